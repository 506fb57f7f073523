package checkpoint

type conflictError struct{ paths []PathNote }

func (e *conflictError) Error() string { return "" }
