package torch

import (
	"encoding/binary"
	"strings"

	"ggforge/checkpoint/safetensors"
)

// value is a value that a pickle builds: nil, bool, int64, float64, string, long, *tuple, *list, *dict, storageClass,
// elementType, *function, *storage or *view.
type value any

type (
	long  string // an integer of more than 64 bits: two's complement, little-endian
	tuple struct{ items []value }
	list  struct{ items []value }
	dict  struct{ pairs [][2]value } // in the order of assignment
)

// storage is the elements of one or more tensors.
type storage struct {
	key      string
	dtype    safetensors.DType // 0 for bytes of any type
	elements int64             // bytes, if there is no type
	found    bool
	at       int64 // offset in the file, once found
	far      *far  // for files of ReadFrom
}

// bytes returns the size of the storage.
func (s *storage) bytes() int64 {
	if s.dtype == 0 {
		return s.elements
	}
	return s.elements * int64(s.dtype.Bits()/8)
}

// view is a tensor before it has a name.
type view struct {
	storage *storage
	dtype   safetensors.DType
	offset  int64 // in elements of the storage
	shape   []int64
	strides []int64
}

// kind returns the type of a value, for messages.
func kind(v value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64, long:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case *tuple:
		return "a tuple"
	case *list:
		return "a list"
	case *dict:
		return "a dict"
	case storageClass, elementType:
		return "a type"
	case *function:
		return v.name
	case *storage:
		return "a storage"
	case *view:
		return "a tensor"
	}
	return "nothing"
}

func kinds(list []value) string {
	var names []string
	for _, v := range list[:min(len(list), 8)] {
		names = append(names, kind(v))
	}
	return strings.Join(names, ", ")
}

// items returns the members of a tuple or list, nil for others.
func items(v value) []value {
	switch v := v.(type) {
	case *tuple:
		return v.items
	case *list:
		return v.items
	}
	return nil
}

// integer returns the number whose two's complement is s.
func integer(s string) value {
	if len(s) > 8 {
		return long(s)
	}
	var full [8]byte
	copy(full[:], s)
	n := int64(binary.LittleEndian.Uint64(full[:]))
	if len(s) > 0 && len(s) < 8 && s[len(s)-1] >= 0x80 {
		n -= 1 << (8 * len(s))
	}
	return n
}
