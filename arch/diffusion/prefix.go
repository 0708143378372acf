package diffusion

import (
	"slices"
	"strings"
)

// A prefix of names that stands before those of the diffusion model.
type prefix struct {
	text string

	// whole: only a checkpoint whose names all begin with it has it; with others, names that do not are
	// parts of other models in the same file: autoencoder, text encoders, averages of weights, schedule.
	whole bool
}

// AveragesPrefix is the beginning of the names of averages of the weights during training (EMA), which checkpoints of
// Stable Diffusion have next to the weights.
const AveragesPrefix = "model_ema."

// prefixes in the order in which they are looked for. The reference has the first three.
var prefixes = []prefix{
	{text: "model.diffusion_model."},
	{text: "model."},
	{text: "net.", whole: true},
	{text: "diffusion_model.", whole: true},
}

// Prefix returns what stands before the names of the diffusion model's tensors in a checkpoint, "" for nothing.
func Prefix(names []string) string {
	if len(names) == 0 {
		return ""
	}
	for _, p := range prefixes {
		with := func(n string) bool { return strings.HasPrefix(n, p.text) }
		without := func(n string) bool { return !with(n) }
		if p.whole && !slices.ContainsFunc(names, without) || !p.whole && slices.ContainsFunc(names, with) {
			return p.text
		}
	}
	return ""
}

// Strip returns the name of a tensor without the checkpoint's prefix; ok is false if it belongs to another model of the
// same file.
func Strip(name, prefix string) (own string, ok bool) { return strings.CutPrefix(name, prefix) }
