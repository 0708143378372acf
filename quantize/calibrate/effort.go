package calibrate

import (
	"fmt"
	"slices"

	"ggforge/fault"
)

// Effort is how much of the quantization a calibration text decides.
type Effort int

const (
	EffortMatrix Effort = iota // an importance matrix: the encoders of package quants, weighted by column
	EffortHigh                 // blocks encoded against the second moments of the base model's inputs (Run)
	// EffortBest is as EffortHigh, tensor by tensor, with inputs of the quantized model, target correction and feedback
	// between rows (Best).
	EffortBest
)

var efforts = []string{"matrix", "high", "best"}

// Efforts returns the names of all efforts, by rising effort.
func Efforts() []string { return slices.Clone(efforts) }

func (e Effort) String() string {
	if e < 0 || int(e) >= len(efforts) {
		return fmt.Sprintf("Effort(%d)", int(e))
	}
	return efforts[e]
}

// EncodesBlocks reports whether blocks are encoded by this package: at EffortHigh and EffortBest.
func (e Effort) EncodesBlocks() bool { return e >= EffortHigh }

// ParseEffort returns the effort of that name; "" is EffortMatrix. Another name is an error of kind fault.Usage.
func ParseEffort(name string) (Effort, error) {
	if name == "" {
		return EffortMatrix, nil
	}
	if i := slices.Index(efforts, name); i >= 0 {
		return Effort(i), nil
	}
	return 0, fault.Errorf(fault.Usage, "effort is %q, want matrix, high or best", name)
}
