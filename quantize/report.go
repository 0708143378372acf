package quantize

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"ggforge/gguf"
	"ggforge/writer"
)

// Report describes a job, for programs as JSON and for people as text.
type Report struct {
	Input      string         `json:"input"`
	InputBytes int64          `json:"input_bytes"` // of all shards
	InputBPW   float64        `json:"input_bpw"`
	Recipe     string         `json:"recipe"`
	NominalBPW float64        `json:"nominal_bpw,omitempty"` // Recipe.BPW
	BPW        float64        `json:"bpw"`                   // of the tensors of this model
	Bytes      int64          `json:"bytes"`                 // of all output files
	Files      []ReportFile   `json:"files"`
	Tensors    []ReportTensor `json:"tensors"`
	Warnings   []string       `json:"warnings"` // one per Compromise
	// Displaced counts, after a write, the sub-blocks of zeros that displace
	// others in IQ3_S.
	Displaced []ReportCount `json:"displaced_sub_blocks,omitempty"`
	// Allocation is set if types were chosen by bit allocation. Its key is "worth".
	Allocation *ReportAllocation `json:"worth,omitempty"`
	// Norms is set if weights of norms were tuned.
	Norms *ReportNorms `json:"norms,omitempty"`
}

// ReportAllocation is the predicted loss of types that were chosen by it.
type ReportAllocation struct {
	Target string `json:"target"`
	Method string `json:"method"`
	Tokens int    `json:"tokens"` // of the text
	// Predicted is the sum of the tensors' predicted KL divergences in nats per token, times Factor; without gradients,
	// of their relative output errors.
	Predicted float64 `json:"predicted"`
	Factor    float64 `json:"factor"`
	// Within bounds how much smaller Predicted could be; 0 if it is the minimum.
	Within float64 `json:"within,omitempty"`
	// Measured is the KL divergence on held-out tokens.
	Measured       *float64 `json:"measured_kld,omitempty"`
	MeasuredError  float64  `json:"measured_kld_error,omitempty"`
	MeasuredTokens int      `json:"measured_tokens,omitempty"`
	// Extrapolated are tensors without inputs in the text, whose losses are estimates.
	Extrapolated []string          `json:"guessed,omitempty"`
	Types        []ReportTypeShare `json:"types"`

	// Losses are the predicted losses by tensor name, times Factor.
	Losses map[string]float64 `json:"-"`
}

// ReportTypeShare is the share of a type in the output.
type ReportTypeShare struct {
	Type    string  `json:"type"`
	Tensors int     `json:"tensors"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"` // of the bytes of all tensors
}

// shares sets the types of a report.
func (w *ReportAllocation) shares(tensors []ReportTensor) {
	w.Types = nil
	var all int64
	for _, t := range tensors {
		i := slices.IndexFunc(w.Types, func(s ReportTypeShare) bool { return s.Type == t.Type })
		if i < 0 {
			i = len(w.Types)
			w.Types = append(w.Types, ReportTypeShare{Type: t.Type})
		}
		w.Types[i].Tensors++
		w.Types[i].Bytes += t.Bytes
		all += t.Bytes
	}
	for i := range w.Types {
		w.Types[i].Share = float64(w.Types[i].Bytes) / float64(max(1, all))
	}
	slices.SortStableFunc(w.Types, func(a, b ReportTypeShare) int { return cmp.Compare(b.Bytes, a.Bytes) })
}

// ReportFile is a file of the output; its size is exact.
type ReportFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// ReportTensor is one tensor of the output.
type ReportTensor struct {
	Name       string  `json:"name"`
	From       string  `json:"from,omitempty"` // name in the input, if it is another
	NE         []int64 `json:"ne"`
	FromType   string  `json:"from_type"`
	Type       string  `json:"type"`
	WantedType string  `json:"wanted_type,omitempty"` // before a fallback
	Bytes      int64   `json:"bytes"`
	Reason     string  `json:"reason"`
	Importance bool    `json:"importance,omitempty"` // used
	// Calibration is set for tensors with EncodedBlocks.
	Calibration *ReportCalibration `json:"calibration,omitempty"`
	// Predicted is this tensor's predicted KL divergence.
	Predicted *float64 `json:"predicted,omitempty"`
}

// ReportCalibration has the output error of a tensor over the calibration text (calibrate.TensorError): as encoded with
// importance, and with the encoded blocks.
type ReportCalibration struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// TraceRatio is tr(D)/tr(H), H = L D Lᵀ the second moments of the inputs: about the share of the rounding error
	// that remains after error feedback. 0 for embedding rows.
	TraceRatio float64 `json:"trace_ratio,omitempty"`
	// Gradients is true if gradients weighted the errors, of an embedding.
	Gradients bool `json:"gradients,omitempty"`
}

// ReportCount is a number of things in a tensor.
type ReportCount struct {
	Tensor string `json:"tensor"`
	Count  int64  `json:"count"`
}

// Report describes the job as it would write to path. result is that of Write,
// or nil.
func (j *Job) Report(path string, result *writer.Result) (*Report, error) {
	files, err := j.Files(path)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Input: j.Input.Path, InputBytes: j.Input.Bytes, InputBPW: j.Input.BPW(),
		Recipe: j.opt.Recipe.Name, NominalBPW: j.opt.Recipe.BPW, BPW: j.BPW(),
		Warnings: []string{},
	}
	for _, f := range files {
		n := f.Size()
		r.Files = append(r.Files, ReportFile{f.Path, n})
		r.Bytes += n
	}
	for i := range j.Decisions {
		d := &j.Decisions[i]
		in, out := j.Input.Tensors[d.Tensor], j.output(d)
		t := ReportTensor{
			Name: d.Name, NE: in.NE, FromType: d.From.String(), Type: d.To.String(),
			Bytes: out.Bytes(), Reason: d.Reason.String(), Importance: d.Importance,
		}
		if in.Name != d.Name {
			t.From = in.Name
		}
		if d.Want != d.To {
			t.WantedType = d.Want.String()
		}
		if j.norms.source(d) != nil {
			t.Reason += ", tuned"
		}
		if j.blocks.Report != nil {
			t.Calibration = j.blocks.Report(d)
		}
		if j.allocation != nil {
			if loss, ok := j.allocation.Losses[d.Name]; ok {
				t.Predicted = &loss
			}
		}
		r.Tensors = append(r.Tensors, t)
	}
	if r.Allocation = j.allocation; r.Allocation != nil {
		r.Allocation.shares(r.Tensors)
	}
	r.Norms = j.norms.Report
	for _, c := range j.Compromises {
		r.Warnings = append(r.Warnings, c.String())
	}
	if result != nil {
		for _, c := range result.Displaced {
			r.Displaced = append(r.Displaced, ReportCount{c.Tensor, c.Blocks})
		}
	}
	return r, nil
}

// WriteText writes one line per tensor.
func (r *Report) WriteText(w io.Writer) {
	width := 0
	for _, t := range r.Tensors {
		width = max(width, len(t.Name))
	}
	for _, t := range r.Tensors {
		reason := t.Reason
		if t.From != "" {
			reason += ", was " + t.From
		}
		if t.Importance {
			reason += ", with importance"
		}
		if c := t.Calibration; c != nil {
			reason += fmt.Sprintf(", error %.3f of that", c.After/c.Before)
		}
		if t.Predicted != nil {
			reason += fmt.Sprintf(", predicted loss %.3g", *t.Predicted)
		}
		fmt.Fprintf(w, "%-*s  %-20s  %-5s -> %-7s  %12d bytes  %s\n", width, t.Name, gguf.Shape(t.NE), t.FromType,
			t.Type, t.Bytes, reason)
	}
}
