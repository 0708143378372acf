package quantize

import (
	"fmt"
	"io"

	"ggforge/gguf"
	"ggforge/writer"
)

// Report says what a job does, for programs as JSON and for people as text.
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
	// Calibration is there for tensors that were chosen.
	Calibration *ReportCalibration `json:"calibration,omitempty"`
}

// ReportCalibration is the error of a tensor's rows, the mean square of what the layer says
// differently over a text: as encoded with importance, and as chosen.
type ReportCalibration struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
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
		if j.chosen.Loss != nil {
			if before, after, ok := j.chosen.Loss(d); ok {
				t.Calibration = &ReportCalibration{before, after}
			}
		}
		r.Tensors = append(r.Tensors, t)
	}
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
		fmt.Fprintf(w, "%-*s  %-20s  %-5s -> %-7s  %12d bytes  %s\n", width, t.Name, gguf.Shape(t.NE), t.FromType, t.Type, t.Bytes, reason)
	}
}
