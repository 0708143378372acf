package cli

// Effect is what a flag does to a run. Manifests, journals, uploads and "ggtool reproduce" use it.
type Effect int

const (
	// Undeclared is the zero value: the flag has no effect declared, which a test refuses.
	Undeclared Effect = iota
	// SetsBytes: the value decides bytes of the outputs or figures of the result.
	SetsBytes
	// ReadsFile: the value names a file or folder that is read.
	ReadsFile
	// KeepsFile: the value names a file that is read if it exists and written otherwise.
	KeepsFile
	// AsksServer: the value names a model that a server may be asked for.
	AsksServer
	// ReadsArgument: the flag decides what an argument means. Manifests record the argument in full instead.
	ReadsArgument
	// Permits: the run may read files that the user has not named. No byte depends on it: the inputs
	// themselves are compared.
	Permits
	// Refuses: the run may end with an error instead. No byte depends on it.
	Refuses
	// NamesOutput: the value is the place or the name of outputs or other results.
	NamesOutput
	// KeepsState: the value names a file or folder for intermediate state.
	KeepsState
	// PrintsOnly: the run writes nothing; it prints something.
	PrintsOnly
	// RunsOnly: the flag decides how the run works, what it may replace and what it prints.
	RunsOnly
)

// Recorded reports whether outputs depend on a flag of this effect: manifests and journals record it.
func (e Effect) Recorded() bool {
	switch e {
	case SetsBytes, ReadsFile, KeepsFile, AsksServer:
		return true
	}
	return false
}

// Identifies reports whether a run with another value of a flag of this effect is another run, so that it cannot upload
// the outputs that an interrupted one has made.
func (e Effect) Identifies() bool {
	switch e {
	case ReadsArgument, Permits, Refuses, NamesOutput:
		return true
	}
	return e.Recorded()
}

// Reproducible reports whether a manifest may set a flag of this effect: Permits needs the user's consent, too.
func (e Effect) Reproducible() bool { return e.Recorded() || e == Permits }
