//go:build !linux

package sandbox

import "errors"

func kernel() (files, network string, err error) {
	return "", "", errors.New("it is of Linux only")
}

// Become is of Linux only.
func Become(Scope, []string, []string) error {
	return errors.New("confining a program this way is of Linux only")
}
