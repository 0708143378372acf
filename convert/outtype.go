package convert

import (
	"slices"
	"strings"

	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// OutType is the type of the weights of the output.
type OutType uint8

// The output types. Auto takes the checkpoint's own 16-bit type.
const (
	Auto OutType = iota
	F32
	F16
	BF16
	Q8_0
	TQ1_0
	TQ2_0
)

type outTypeRow struct {
	name     string // as given by users
	label    string // in file names
	fileType uint32 // general.file_type
	tensor   gguf.Type
}

var outTypes = [...]outTypeRow{
	Auto:  {name: "auto"},
	F32:   {"f32", "F32", 0, gguf.TypeF32},
	F16:   {"f16", "F16", 1, gguf.TypeF16},
	BF16:  {"bf16", "BF16", 32, gguf.TypeBF16},
	Q8_0:  {"q8_0", "Q8_0", 7, gguf.TypeQ8_0},
	TQ1_0: {"tq1_0", "TQ1_0", 36, gguf.TypeTQ1_0},
	TQ2_0: {"tq2_0", "TQ2_0", 37, gguf.TypeTQ2_0},
}

func (t OutType) row() outTypeRow { return outTypes[t] }

// mxfp4Row is for files with MXFP4 experts and otherwise unquantized types.
var mxfp4Row = outTypeRow{label: "MXFP4_MOE", fileType: 38}

// nvfp4Row is for files with NVFP4 weights and otherwise unquantized types.
var nvfp4Row = outTypeRow{label: "NVFP4", fileType: 39}

// row returns the row of the output file.
func (j *Job) row() outTypeRow {
	if j.Image != nil {
		return j.Type.row()
	}
	has := func(typ gguf.Type) bool {
		return slices.ContainsFunc(j.Plan, func(t Tensor) bool { return t.Source.Type() == typ })
	}
	switch {
	case table.Has[table.MXFP4](j.Arch) && has(gguf.TypeMXFP4):
		return mxfp4Row
	case j.Type.row().tensor.BlockLen() > 1:
	case has(gguf.TypeNVFP4):
		return nvfp4Row
	case has(gguf.TypeMXFP4):
		return mxfp4Row
	case j.labelled != nil:
		return *j.labelled
	}
	return j.Type.row()
}

// Label returns the type as file names have it: "BF16".
func (j *Job) Label() string { return j.row().label }

// String returns the name that ParseOutType accepts.
func (t OutType) String() string { return outTypes[t].name }

// ParseOutType returns the output type of that name.
func ParseOutType(name string) (OutType, error) {
	for t, r := range outTypes {
		if r.name == name {
			return OutType(t), nil
		}
	}
	return Auto, fault.Errorf(fault.Usage, "output type %q: want one of %s", name, OutTypeNames())
}

// OutTypeNames lists the names of the output types.
func OutTypeNames() string {
	var names []string
	for _, r := range outTypes {
		names = append(names, r.name)
	}
	return strings.Join(names, ", ")
}

// FromFileName returns the output type at the end of a file name: F16 for "model-f16.gguf" or "model-F16". ok is false
// for other names.
func FromFileName(name string) (t OutType, ok bool) {
	base := strings.ToLower(strings.TrimSuffix(strings.ToLower(name), ".gguf"))
	for t, r := range outTypes {
		if OutType(t) != Auto && strings.HasSuffix(base, "-"+r.name) {
			return OutType(t), true
		}
	}
	return Auto, false
}

// tensor returns the type of a tensor that is not kept in F32, under t, which is not Auto: embeddings are F16 in
// ternary files, and rows that are not whole blocks fall back to F16, as in the reference. Sources of blocks keep their
// type.
func (t OutType) tensor(name string, src rows.Source) gguf.Type {
	if src.Type().BlockLen() > 1 {
		return src.Type()
	}
	if (t == TQ1_0 || t == TQ2_0) && f16InTernary[table.Base(name)] {
		return gguf.TypeF16
	}
	return whole(t.row().tensor, src)
}

// whole returns t, or F16 where the rows of src are not whole blocks of t.
func whole(t gguf.Type, src rows.Source) gguf.Type {
	if gguf.RowLen(src.NE())%t.BlockLen() != 0 {
		return gguf.TypeF16
	}
	return t
}

// f16InTernary are the weights that the reference keeps in F16 in files of the
// ternary types.
var f16InTernary = map[string]bool{"token_embd": true, "output": true, "per_layer_token_embd": true,
	"altup_router": true, "laurel_l": true, "laurel_r": true}

// fillTemplate replaces the fields of a file name: {ftype} and {outtype} by the
// label in lower case, {FTYPE} and {OUTTYPE} in upper case.
func fillTemplate(name, label string) (string, error) {
	lower, upper := strings.ToLower(label), strings.ToUpper(label)
	name, err := gguf.FillTemplate(name, map[string]string{"": lower, "ftype": lower, "outtype": lower, "FTYPE": upper,
		"OUTTYPE": upper})
	if err != nil {
		return "", fault.Errorf(fault.Usage, "output %w: want {ftype}, {outtype}, {FTYPE} or {OUTTYPE}", err)
	}
	return name, nil
}
