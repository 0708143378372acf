package torch

import (
	"ggforge/checkpoint/safetensors"
)

// storageTypes has the element types of the storage classes in the modules torch and torch.cuda.
var storageTypes = map[string]safetensors.DType{
	"DoubleStorage":       safetensors.F64,
	"FloatStorage":        safetensors.F32,
	"HalfStorage":         safetensors.F16,
	"BFloat16Storage":     safetensors.BF16,
	"LongStorage":         safetensors.I64,
	"IntStorage":          safetensors.I32,
	"ShortStorage":        safetensors.I16,
	"CharStorage":         safetensors.I8,
	"ByteStorage":         safetensors.U8,
	"BoolStorage":         safetensors.BOOL,
	"ComplexFloatStorage": safetensors.C64,
}

// elementTypes has the types in module torch for tensors in untyped storages.
var elementTypes = map[string]safetensors.DType{
	"float64":         safetensors.F64,
	"float32":         safetensors.F32,
	"float16":         safetensors.F16,
	"bfloat16":        safetensors.BF16,
	"float8_e4m3fn":   safetensors.F8_E4M3,
	"float8_e5m2":     safetensors.F8_E5M2,
	"float8_e4m3fnuz": safetensors.F8_E4M3FNUZ,
	"float8_e5m2fnuz": safetensors.F8_E5M2FNUZ,
	"float8_e8m0fnu":  safetensors.F8_E8M0,
	"int64":           safetensors.I64,
	"int32":           safetensors.I32,
	"int16":           safetensors.I16,
	"int8":            safetensors.I8,
	"uint64":          safetensors.U64,
	"uint32":          safetensors.U32,
	"uint16":          safetensors.U16,
	"uint8":           safetensors.U8,
	"bool":            safetensors.BOOL,
	"complex64":       safetensors.C64,
}

// The values of globals in a pickle.
type (
	storageClass struct{ dtype safetensors.DType } // 0 for one without a type
	elementType  struct{ dtype safetensors.DType }
	function     struct {
		name string
		call func(m *machine, args []value) (value, error)
	}
)

// functions are all functions that a pickle may call.
var functions = map[string]func(m *machine, args []value) (value, error){
	"collections.OrderedDict":                    makeDict,
	"torch._utils._rebuild_tensor":               rebuildTensor,
	"torch._utils._rebuild_tensor_v2":            rebuildTensor,
	"torch._utils._rebuild_tensor_v3":            rebuildTensor3,
	"torch._utils._rebuild_parameter":            rebuildParameter,
	"torch._utils._rebuild_parameter_with_state": rebuildParameter,
}

// global returns the value of a name, an error of kind fault.Refused for a name in no table.
func (m *machine) global(module, name string) (value, error) {
	if module == "torch" || module == "torch.cuda" {
		if t, ok := storageTypes[name]; ok {
			return storageClass{t}, nil
		}
	}
	if t, ok := elementTypes[name]; ok && module == "torch" {
		return elementType{t}, nil
	}
	full := module + "." + name
	if full == "torch.storage.UntypedStorage" || full == "torch.UntypedStorage" {
		return storageClass{}, nil
	}
	if f, ok := functions[full]; ok {
		return &function{full, f}, nil
	}
	return nil, m.refused("names %s: only what makes tensors is read", quote(full))
}

// makeDict is OrderedDict(), or OrderedDict(list of pairs) as Python 2 wrote it.
func makeDict(m *machine, args []value) (value, error) {
	d := new(dict)
	if len(args) == 0 {
		return d, nil
	}
	pairs, ok := args[0].(*list)
	if len(args) > 1 || !ok {
		return nil, m.broken("OrderedDict of %s, want nothing or a list of pairs", kinds(args))
	}
	if err := m.spend(len(pairs.items)); err != nil {
		return nil, err
	}
	d.pairs = make([][2]value, 0, len(pairs.items))
	for _, p := range pairs.items {
		kv := items(p)
		if len(kv) != 2 {
			return nil, m.broken("OrderedDict of a list with %s, want pairs", kind(p))
		}
		d.pairs = append(d.pairs, [2]value{kv[0], kv[1]})
	}
	return d, nil
}

// rebuildTensor makes a tensor of (storage, offset, size, stride, requires_grad,
// hooks, metadata), of which the last three may be absent.
func rebuildTensor(m *machine, args []value) (value, error) {
	if len(args) < 4 || len(args) > 7 {
		return nil, m.broken("a tensor of %d arguments, want 4 to 7", len(args))
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, m.broken("a tensor of %s, want a storage", kind(args[0]))
	}
	if s.dtype == 0 {
		return nil, m.broken("a tensor of a storage without a type of element")
	}
	if len(args) == 7 {
		if err := m.plain(args[6]); err != nil {
			return nil, err
		}
	}
	return m.view(s, s.dtype, args[1:4])
}

// rebuildTensor3 makes a tensor of (storage, offset, size, stride, requires_grad,
// hooks, type, metadata), of which the last may be absent.
func rebuildTensor3(m *machine, args []value) (value, error) {
	if len(args) < 7 || len(args) > 8 {
		return nil, m.broken("a tensor of %d arguments, want 7 or 8", len(args))
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, m.broken("a tensor of %s, want a storage", kind(args[0]))
	}
	t, ok := args[6].(elementType)
	if !ok {
		return nil, m.broken("a tensor of type %s, want a type of element", kind(args[6]))
	}
	if s.dtype != 0 {
		return nil, m.broken("a tensor of %v in a storage of %v", t.dtype, s.dtype)
	}
	if len(args) == 8 {
		if err := m.plain(args[7]); err != nil {
			return nil, err
		}
	}
	return m.view(s, t.dtype, args[1:4])
}

// plain refuses metadata that change the elements: negated or conjugated tensors.
func (m *machine) plain(metadata value) error {
	switch v := metadata.(type) {
	case nil:
		return nil
	case *dict:
		if len(v.pairs) == 0 {
			return nil
		}
	}
	return m.unsupported("a tensor has metadata, such as for negated elements, which is not read")
}

// rebuildParameter makes the tensor of (tensor, requires_grad, hooks, state), of which
// the last may be absent.
func rebuildParameter(m *machine, args []value) (value, error) {
	if len(args) < 3 || len(args) > 4 {
		return nil, m.broken("a parameter of %d arguments, want 3 or 4", len(args))
	}
	if _, ok := args[0].(*view); !ok {
		return nil, m.broken("a parameter of %s, want a tensor", kind(args[0]))
	}
	return args[0], nil
}
