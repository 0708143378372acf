package quantize

import (
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/writer"
)

// Encoded returns the rows of a tensor as Write would encode them at type t. It returns nil if the tensor cannot have
// that type: rows are not whole blocks, importance is required and missing, there is no encoder, or the tensor is
// quantized already.
func (j *Job) Encoded(d *Decision, t gguf.Type) rows.Source {
	in := &j.Input.Tensors[d.Tensor]
	if t == in.Type {
		return in.Source
	}
	codec := quants.Lookup(t)
	if !t.Known() || !in.Type.Known() || !codec.CanQuantize() || !quants.Lookup(in.Type).CanDequantize() ||
		!fits(t, in.NE[0]) ||
		in.Type.Kind() == gguf.KindQuant && !j.opt.AllowRequantize {
		return nil
	}
	as := *d
	as.To, as.Importance = t, false
	if j.matrix.Len() > 0 {
		ok, _, err := j.matrix.Check(in.Name, in.NE)
		if err != nil {
			return nil
		}
		as.Importance = ok && codec.Importance() != quants.ImportanceIgnored
	}
	if j.opt.Recipe.needs(t, roleOf(d.Name)) && !as.Importance {
		return nil
	}
	plain := *j
	plain.blocks = EncodedBlocks{}
	return writer.Encoded(plain.tensor(&as))
}

// SetAllocation adds bit allocation to the report and its metadata to the output.
func (j *Job) SetAllocation(w *ReportAllocation, metadata []gguf.KV) {
	j.allocation = w
	for _, kv := range metadata {
		j.metadata.Move(kv.Key, kv.Value)
	}
}
