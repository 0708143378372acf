package convert

import (
	"strings"

	"ggforge/arch"
	"ggforge/gguf"
	"ggforge/internal/fault"
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
)

type outTypeRow struct {
	name     string // as given by users
	label    string // in file names
	fileType uint32 // general.file_type
	tensor   gguf.Type
}

var outTypes = [...]outTypeRow{
	Auto: {name: "auto"},
	F32:  {"f32", "F32", 0, gguf.TypeF32},
	F16:  {"f16", "F16", 1, gguf.TypeF16},
	BF16: {"bf16", "BF16", 32, gguf.TypeBF16},
	Q8_0: {"q8_0", "Q8_0", 7, gguf.TypeQ8_0},
}

func (t OutType) row() outTypeRow { return outTypes[t] }

// String returns the name that ParseOutType takes.
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

// FromFileName returns the output type that a file name ends in: "model-f16.gguf"
// or "model-F16" name F16. ok is false for other names.
func FromFileName(name string) (t OutType, ok bool) {
	base := strings.ToLower(strings.TrimSuffix(strings.ToLower(name), ".gguf"))
	for t, r := range outTypes {
		if OutType(t) != Auto && strings.HasSuffix(base, "-"+r.name) {
			return OutType(t), true
		}
	}
	return Auto, false
}

// tensor returns the type of a tensor under t, which is not Auto: rows that are
// not whole blocks fall back to F16, as in the reference.
func (t OutType) tensor(name string, ne []int64) gguf.Type {
	if arch.KeepF32(name, ne) {
		return gguf.TypeF32
	}
	typ := t.row().tensor
	if gguf.RowLen(ne)%typ.BlockLen() != 0 {
		return gguf.TypeF16
	}
	return typ
}

// fillTemplate replaces the fields of a file name: {ftype} and {outtype} by the
// label in lower case, {FTYPE} and {OUTTYPE} in upper case.
func fillTemplate(name, label string) (string, error) {
	lower, upper := strings.ToLower(label), strings.ToUpper(label)
	name, err := gguf.FillTemplate(name, map[string]string{"": lower, "ftype": lower, "outtype": lower, "FTYPE": upper, "OUTTYPE": upper})
	if err != nil {
		return "", fault.Errorf(fault.Usage, "output %w: want {ftype}, {outtype}, {FTYPE} or {OUTTYPE}", err)
	}
	return name, nil
}
