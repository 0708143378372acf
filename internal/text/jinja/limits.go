package jinja

// The limits of a template: a template comes from a file and is hostile until shown otherwise.
const (
	// MaxSource bounds the bytes of a template.
	MaxSource = 1 << 20
	// MaxNesting bounds how deep tags, brackets and operators of a template are nested.
	MaxNesting = 200
	// MaxCalls bounds the macros that run at a time.
	MaxCalls = 200
	// MaxSteps bounds the nodes that one rendering evaluates, and the elements that filters and methods visit.
	MaxSteps = 10_000_000
	// MaxOutput bounds the bytes of a rendered text.
	MaxOutput = 64 << 20
	// MaxMemory bounds the bytes of all texts, lists and dicts that one rendering makes, beyond twice its input.
	MaxMemory = 256 << 20
	// MaxRange bounds the numbers of range(), as Jinja's sandbox does.
	MaxRange = 100_000

	// maxDepth bounds the calls of the evaluator inside each other, and maxNested the depth of a value that is
	// printed or compared. Go's stack holds a multiple of both.
	maxDepth  = 10_000
	maxNested = 500
	// maxRaised bounds the bytes of the message of raise_exception that an error shows.
	maxRaised = 1000
)
