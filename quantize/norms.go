package quantize

import (
	"ggforge/gguf"
	"ggforge/rows"
)

// TunedNorms are weights of norms that differ from those of the input (calibrate.TuneNorms).
type TunedNorms struct {
	// Source returns the weights of a tensor of the output, by its name; nil for one that stays as it is.
	Source func(tensor string) rows.Source
	Report *ReportNorms
	// Metadata is set in the output.
	Metadata []gguf.KV
}

// ReportNorms has the effect of tuned weights of norms: the mean KL divergence from the input, in nats per token, on
// tokens that were held apart.
type ReportNorms struct {
	Tensors int     `json:"tensors"` // whose weights were changed
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	Error   float64 `json:"error"`  // standard error of the difference
	Tokens  int     `json:"tokens"` // held apart
	Step    int     `json:"step"`   // the one that was kept; 0 for none
	Steps   int     `json:"steps"`
}

// SetNorms sets tuned weights of norms for the output, and its metadata.
func (j *Job) SetNorms(n TunedNorms) {
	j.norms = n
	for _, kv := range n.Metadata {
		j.metadata.Move(kv.Key, kv.Value)
	}
}

// source returns the weights of a tensor, nil for one that stays as it is.
func (n *TunedNorms) source(d *Decision) rows.Source {
	if n.Source == nil || d.To != gguf.TypeF32 || d.From != gguf.TypeF32 {
		return nil
	}
	return n.Source(d.Name)
}
