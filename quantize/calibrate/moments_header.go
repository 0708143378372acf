package calibrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
)

// headerKeys reads the metadata of a moments file; err is the first error.
type headerKeys struct {
	f   *gguf.File
	err error
}

func (k *headerKeys) bad(name string, v gguf.Value, want string) {
	if k.err == nil {
		k.err = fault.Errorf(fault.Broken, "%s: key %q is %v %s, want %s", k.f.Path, momentsKeys+name, v.Type(),
			v.Short(), want)
	}
}

func (k *headerKeys) str(name string) string {
	v, _ := k.f.Metadata.Get(momentsKeys + name)
	s, ok := v.Str()
	if !ok {
		k.bad(name, v, "a string")
	}
	return s
}

func (k *headerKeys) hash(name string) (h [sha256.Size]byte) {
	s := k.str(name)
	if b, err := hex.DecodeString(s); err != nil || copy(h[:], b) != len(b) || len(b) != len(h) {
		k.bad(name, gguf.String(s), "a SHA-256 in hexadecimal digits")
	}
	return h
}

// number returns a u64 below 2^31.
func (k *headerKeys) number(name string) int {
	v, _ := k.f.Metadata.Get(momentsKeys + name)
	n, ok := v.Int()
	if !ok || v.Type() != gguf.Uint64Type || n < 0 || n > math.MaxInt32 {
		k.bad(name, v, "a u64 below 2^31")
		return 0
	}
	return int(n)
}

func (k *headerKeys) array(name string, elem gguf.ValueType) gguf.Value {
	v, _ := k.f.Metadata.Get(momentsKeys + name)
	if v.Type() != gguf.ArrayType || v.ElemType() != elem {
		k.bad(name, v, fmt.Sprintf("an array of %v", elem))
		return gguf.Array(elem)
	}
	return v
}

// numbers returns an array of count values of at most 53 bits; of any length for -1.
func (k *headerKeys) numbers(name string, count int) []int {
	v := k.array(name, gguf.Uint64Type)
	if count >= 0 && v.Len() != count {
		k.bad(name, v, fmt.Sprintf("%d elements", count))
		return make([]int, count) // count is the length of another array of the file
	}
	list := make([]int, 0, v.Len())
	for e := range v.Elems() {
		n, ok := e.Int()
		if !ok || n < 0 || n > 1<<53 {
			k.bad(name, e, "at most 2^53")
			n = 0
		}
		list = append(list, int(n))
	}
	return list
}

// parseMoments checks the structure of a file.
func parseMoments(f *gguf.File) (*MomentsFile, error) {
	kind, _ := f.Metadata.Get("general.type")
	if s, _ := kind.Str(); s != momentsType || f.BigEndian {
		return nil, fault.Errorf(fault.Broken,
			"%s: general.type is %s, want %q, little-endian: not a file of second moments", f.Path,
			kind.Short(), momentsType)
	}
	version, _ := f.Metadata.Get(momentsKeys + "version")
	if n, ok := version.Int(); !ok || n != momentsVersion {
		return nil, fault.Errorf(fault.Refused,
			"%s: moments file of version %s, want %d; remove the file to collect moments again", f.Path,
			version.Short(), momentsVersion)
	}
	k := &headerKeys{f: f}
	s := &MomentsFile{
		file: f, model: k.str("model"), Text: k.hash("text_sha256"), tokens: k.str("tokens_sha256"),
		Chunk: k.number("chunk_size"), Tokens: k.number("token_count"), columns: k.number("max_columns"),
		gradients: k.number("gradients"),
	}
	if _, ok := f.Metadata.Get(momentsKeys + "no_gradients"); ok {
		s.noGradients = k.str("no_gradients")
	}
	columns := k.numbers("columns", -1)
	rows, matrices, readers := k.numbers("rows", len(columns)), k.numbers("matrices", len(columns)),
		k.numbers("readers", len(columns))
	names := k.array("tensor", gguf.StringType)
	matrix := k.numbers("matrix", names.Len())
	s.sums = map[string]string{}
	if sums := k.array("sums", gguf.StringType); sums.Len() != len(f.Tensors) {
		k.bad("sums", sums, fmt.Sprintf("%d elements", len(f.Tensors)))
	} else {
		i := 0
		for v := range sums.Elems() {
			s.sums[f.Tensors[i].Name], _ = v.Str()
			i++
		}
	}
	if k.err == nil && (s.Chunk < 1 || s.Tokens%s.Chunk != 0 || s.columns < 1) {
		k.err = fault.Errorf(fault.Broken, "%s: %d tokens in chunks of %d, at most %d columns together", f.Path,
			s.Tokens, s.Chunk, s.columns)
	}
	if k.err != nil {
		return nil, k.err
	}
	var all []key
	seen := map[key]bool{}
	for v := range names.Elems() {
		name, _ := v.Str()
		one := key{name, matrix[len(all)]}
		if seen[one] {
			return nil, fault.Errorf(fault.Broken, "%s: matrix %d of tensor %q reads two inputs", f.Path,
				one.matrix, name)
		}
		seen[one] = true
		all = append(all, one)
	}
	tensors := make(map[string]*gguf.Tensor, len(f.Tensors))
	for i := range f.Tensors {
		tensors[f.Tensors[i].Name] = &f.Tensors[i]
	}
	for i, n := range columns {
		in := storedInput{columns: n, rows: rows[i], matrices: matrices[i]}
		if readers[i] < 1 || readers[i] > len(all) || n < 1 {
			return nil, fault.Errorf(fault.Broken, "%s: input %d of %d columns has %d readers, and there are %d",
				f.Path, i, n, readers[i], len(all))
		}
		in.readers, all = all[:readers[i]], all[readers[i]:]
		for _, r := range in.readers {
			if r.matrix >= in.matrices {
				return nil, fault.Errorf(fault.Broken, "%s: matrix %d of tensor %q, which has %d", f.Path, r.matrix,
					r.name, in.matrices)
			}
		}
		for from := 0; from < n; from += s.columns {
			name := partName(i, len(in.parts))
			t, err := s.triangle(tensors[name], name, min(s.columns, n-from))
			if err != nil {
				return nil, err
			}
			in.parts = append(in.parts, t)
		}
		s.inputs = append(s.inputs, in)
	}
	if len(all) > 0 {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q reads no input", f.Path, all[0].name)
	}
	s.costs = tensors[costsName]
	if t := tensors[sumsName]; t != nil {
		if t.Type != gguf.TypeI8 {
			return nil, fault.Errorf(fault.Broken, "%s: tensor %q is %v, want I8", f.Path, t.Name, t.Type)
		}
		if sum := hexSum(xxh3.Hash(f.Data(t))); sum != s.sums[sumsName] {
			return nil, s.damaged(t, sum)
		}
		var err error
		if s.Sums, _, err = imatrix.ParseState(f.Path+": tensor "+sumsName, f.Data(t)); err != nil {
			return nil, err
		}
	}
	return s, nil
}
