# For habit: each target calls the script of the same name. ARGS are its arguments.
.PHONY: demo build test lint bench fuzz install
demo build test lint bench fuzz install:
	@./script/$@ $(ARGS)
