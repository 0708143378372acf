package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/arch/diffusion"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/parallel"
	"ggforge/model/limits"
	"ggforge/quants"
	"ggforge/tokenizer/chat"
	"ggforge/tokenizer/vocab"
)

// Finding is one defect or note.
type Finding struct {
	Text string `json:"text"` // with the file, and the key or tensor
	Note bool   `json:"note"` // loaders may accept the file all the same
}

// Options are the settings of a verification.
type Options struct {
	Workers   int  // 0 for 1
	Structure bool // read headers only, no tensors
	// Source are the chat templates of the model that the file was made of; what the file's templates make of a fixed
	// set of conversations has to be the same. nil compares nothing.
	Source chat.Templates
}

// maxFindings bounds the findings that Model returns; the last one has the number of the others.
const maxFindings = 2000

// findings collects the findings about a model.
type findings struct {
	list  []Finding
	more  int  // findings beyond maxFindings
	wrong bool // whether one of the findings beyond maxFindings is a defect
	later bool // the file is a later shard: the model's metadata is in the first one
	lost  bool // headers have defects: some tensors are missing in files
}

func (f *findings) add(format string, args ...any)  { f.put(false, format, args...) }
func (f *findings) note(format string, args ...any) { f.put(true, format, args...) }

func (f *findings) put(note bool, format string, args ...any) {
	if len(f.list) < maxFindings {
		f.list = append(f.list, Finding{fmt.Sprintf(format, args...), note})
		return
	}
	f.more, f.wrong = f.more+1, f.wrong || !note
}

// all returns the findings, the last one with the number of omitted ones.
func (f *findings) all(path string) []Finding {
	if f.more == 0 {
		return f.list
	}
	return append(f.list, Finding{fmt.Sprintf("%s: and %d more", path, f.more), !f.wrong})
}

// Model checks the file at path, and the other shards if it is the first of several. It returns the first 2000
// findings and the number of the others. The error is a read error.
func Model(ctx context.Context, path string, opt Options) ([]Finding, error) {
	var all findings
	files, err := open(path, &all)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil || len(files) == 0 {
		return all.all(path), err
	}
	if !opt.Structure {
		if err := blocks(ctx, files, &all, opt); err != nil {
			return nil, err
		}
	}
	if err := mmap.Guard(path, func() error { meaning(files, &all); return nil }); err != nil {
		return nil, err
	}
	if !all.later {
		if err := templates(ctx, files[0], &all, opt.Source); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := f.Unchanged(); err != nil {
			return nil, err
		}
	}
	return all.all(path), ctx.Err()
}

// Worse returns the defects that m would have as the metadata of f, and that the present metadata do not have,
// including ids of special tokens outside the vocabulary. Of further shards only the names and dimensions of tensors
// count.
func Worse(f *gguf.File, m gguf.Metadata) ([]string, error) {
	others := furtherShards(f)
	defer func() {
		for _, g := range others {
			g.Close()
		}
	}()
	find := func(m gguf.Metadata) (list []string, err error) {
		g := *f
		g.Metadata = m
		var all findings
		err = mmap.Guard(f.Path, func() error { meaning(append([]*gguf.File{&g}, others...), &all); return nil })
		for _, x := range all.all(f.Path) {
			if !x.Note {
				list = append(list, x.Text)
			}
		}
		of, n := vocab.OutOfRange(m)
		for _, kv := range of {
			list = append(list, outOfRange(f.Path, kv, n))
		}
		return list, err
	}
	was := slices.Clone(f.Metadata)
	if v, ok := m.Get(gguf.KeyArchitecture); ok { // the present metadata under the new architecture
		was.Set(gguf.KeyArchitecture, v)
	}
	before, err := find(was)
	if err != nil {
		return nil, err
	}
	after, err := find(m)
	after = slices.DeleteFunc(after, func(text string) bool { return slices.Contains(before, text) })
	// The file could not be read again with a name that the new architecture does not take.
	for name, ne := range (&gguf.Set{Files: append([]*gguf.File{f}, others...)}).Shapes() {
		if err := gguf.LimitsOf(m.Architecture()).Check(name, ne); err != nil &&
			gguf.LimitsOf(f.Architecture()).Check(name, ne) == nil {
			after = append(after, fmt.Sprintf("%s: tensor %q: %v", f.Path, name, err))
		}
	}
	return after, err
}

// furtherShards opens the shards after the first one, f; it returns none if f is another file or if one cannot be
// opened.
func furtherShards(f *gguf.File) (list []*gguf.File) {
	dir, base := filepath.Split(f.Path)
	prefix, no, count, ok := gguf.ParseShardName(base)
	for i := 1; ok && no == 0 && i < count; i++ {
		g, err := gguf.Open(gguf.ShardName(dir+prefix, i, count))
		if err != nil {
			for _, g := range list {
				g.Close()
			}
			return nil
		}
		list = append(list, g)
	}
	return list
}

// outOfRange is the message for a special token whose id is not among n tokens.
func outOfRange(path string, kv gguf.KV, n int) string {
	return fmt.Sprintf("%s: key %q: is %s, want the id of one of %d tokens", path, kv.Key, kv.Value.Short(), n)
}

// open opens the file and the further shards that exist.
func open(path string, all *findings) (files []*gguf.File, err error) {
	one := func(path string) (*gguf.File, error) {
		c, err := gguf.Check(path)
		if err != nil {
			return nil, err
		}
		for _, e := range c.Errors {
			all.add("%v", e)
			all.lost = true
		}
		for _, e := range c.Notes {
			all.note("%v", e)
		}
		return c.File, nil
	}
	first, err := one(path)
	if first == nil || err != nil {
		return nil, err
	}
	files = append(files, first)
	number := func(f *gguf.File, key string, absent int64) int64 {
		v, ok := f.Metadata.Get(key)
		if !ok {
			return absent
		}
		n, ok := v.Int()
		if !ok {
			all.add("%s: key %q: is %s, want a count", f.Path, key, v.Short())
			return absent
		}
		return n
	}
	no, count, tensors := number(first, gguf.KeySplitNo, 0), number(first, gguf.KeySplitCount, 1),
		number(first, gguf.KeySplitTensors, -1)
	dir, base := filepath.Split(path)
	prefix, nameNo, nameCount, named := gguf.ParseShardName(base)
	switch {
	case count <= 1:
	case no < 0 || no >= count || count > gguf.MaxShards:
		all.add("%s: %s is %d and %s is %d: want a number below the count, and at most %d shards", path,
			gguf.KeySplitNo, no, gguf.KeySplitCount, count, gguf.MaxShards)
		return files, nil
	case !named || int64(nameNo) != no || int64(nameCount) != count:
		all.add("%s: shard %d of %d, want a name ending in %s", path, no+1, count,
			gguf.ShardName("", int(no), int(count)))
		return files, nil
	case no != 0:
		all.note("%s: shard %d of %d: looked at alone", path, no+1, count)
		all.later = true
		return files, nil
	}
	for i := int64(1); i < count; i++ {
		name := gguf.ShardName(dir+prefix, int(i), int(count))
		f, err := one(name)
		if err != nil {
			all.add("shard %d of %d: %v", i+1, count, err)
			continue
		}
		if f == nil {
			continue
		}
		files = append(files, f)
		if n, c := number(f, gguf.KeySplitNo, 0), number(f, gguf.KeySplitCount, 1); n != i || c != count {
			all.add("%s: says it is shard %d of %d, want %d of %d", name, n+1, c, i+1, count)
		}
		if n := number(f, gguf.KeySplitTensors, tensors); n != tensors {
			all.add("%s: %s is %d, the first shard says %d", name, gguf.KeySplitTensors, n, tensors)
		}
	}
	seen, total := map[string]string{}, int64(0)
	for _, f := range files {
		for i := range f.Tensors {
			t := &f.Tensors[i]
			if other, ok := seen[t.Name]; ok {
				all.add("%s: tensor %q is in %s, too", f.Path, t.Name, other)
			}
			seen[t.Name] = f.Path
			total++
		}
	}
	if tensors >= 0 && total != tensors {
		all.add("%s: %s is %d, but %d tensors are right", path, gguf.KeySplitTensors, tensors, total)
	}
	return files, nil
}

// piece is the number of bytes of a tensor that are checked at a time, in whole blocks.
const piece = 4 << 20

// blocks checks the elements of all tensors.
func blocks(ctx context.Context, files []*gguf.File, all *findings, opt Options) error {
	type job struct {
		f        *gguf.File
		t        *gguf.Tensor
		from, to int64
		tensor   int
	}
	var jobs []job
	var bad []error // the first error of each tensor
	statistics := isMatrix(files[0].Metadata)
	for _, f := range files {
		for i := range f.Tensors {
			t := &f.Tensors[i]
			if statistics && strings.HasSuffix(t.Name, ".stats") {
				continue // NaN stands for an unknown value
			}
			if quants.Lookup(t.Type) == nil || !t.Type.Known() {
				all.note("%s: tensor %q: numbers of type %v are not looked at", f.Path, t.Name, t.Type)
				continue
			}
			size := max(1, piece/t.Type.BlockBytes()) * t.Type.BlockBytes()
			for from := int64(0); from < t.Bytes(); from += size {
				jobs = append(jobs, job{f, t, from, min(from+size, t.Bytes()), len(bad)})
			}
			bad = append(bad, nil)
		}
	}
	errs := make([]error, len(jobs))
	buffers := make([][]byte, max(1, opt.Workers))
	err := parallel.For(ctx, len(buffers), len(jobs), func(i, worker int) error {
		j := &jobs[i]
		if buffers[worker] == nil {
			buffers[worker] = make([]byte, piece+1024)
		}
		b := buffers[worker]
		if int64(len(b)) < j.to-j.from {
			b = make([]byte, j.to-j.from)
		}
		b = b[:j.to-j.from]
		if n, err := j.f.Reader(j.t).ReadAt(b, j.from); n < len(b) {
			return fmt.Errorf("%s: tensor %q: %w", j.f.Path, j.t.Name, err)
		}
		if j.f.BigEndian {
			j.t.Type.SwapBytes(b)
		}
		errs[i] = validate(j.t.Type, b, j.from)
		return nil
	})
	if err != nil {
		return err
	}
	for i, err := range errs {
		if j := &jobs[i]; err != nil && bad[j.tensor] == nil {
			bad[j.tensor] = err
			all.add("%s: tensor %q: %v", j.f.Path, j.t.Name, err)
		}
	}
	return nil
}

// validate checks the blocks that begin at an offset of their tensor.
func validate(t gguf.Type, b []byte, at int64) error {
	err := quants.Lookup(t).Validate(b)
	var format *quants.FormatError
	if errors.As(err, &format) {
		moved := *format
		moved.Block, moved.Off = format.Block+int(at/t.BlockBytes()), format.Off+at
		return &moved
	}
	if errors.Is(err, fault.Unsupported) {
		return nil // integers are always valid
	}
	return err
}

const keyType = "general.type"

// isMatrix reports whether a file is an importance matrix.
func isMatrix(m gguf.Metadata) bool {
	v, _ := m.Get(keyType)
	s, _ := v.Str()
	return s == "imatrix"
}

// meaning checks the values of metadata.
func meaning(files []*gguf.File, all *findings) {
	f := files[0]
	m := f.Metadata
	name := m.Architecture()
	kind, _ := m.Get(keyType)
	for _, text := range limits.Unread((&gguf.Set{Files: files}).Shapes()) {
		all.note("%s: %s", f.Path, text)
	}
	if isMatrix(m) || all.later && name == "" {
		return
	}
	quantized := false
	most := gguf.LimitsOf(name)
	for _, f := range files {
		for i := range f.Tensors {
			// The headers of later shards are read by wider limits, and those of changed metadata by the present ones.
			if err := most.Check(f.Tensors[i].Name, f.Tensors[i].NE); err != nil && !all.lost {
				all.add("%s: tensor %q: %v", f.Path, f.Tensors[i].Name, err)
			}
			quantized = quantized || f.Tensors[i].Type.Known() && f.Tensors[i].Type.BlockLen() > 1
		}
	}
	if v, ok := m.Get(gguf.KeyQuantizationVersion); quantized && !ok {
		all.note("%s: has quantized tensors, but no key %q", f.Path, gguf.KeyQuantizationVersion)
	} else if n, isInt := v.Int(); ok && (!isInt || n != gguf.QuantizationVersion) {
		all.add("%s: key %q: is %s, want %d", f.Path, gguf.KeyQuantizationVersion, v.Short(), gguf.QuantizationVersion)
	}
	for _, kv := range m {
		if want, _, ok := gguf.StandardType(kv.Key); ok && kv.Value.Type() != want {
			all.add("%s: key %q: type %v, want %v", f.Path, kv.Key, kv.Value.Type(), want)
		}
	}
	tokens(f, all)
	if name == "" {
		all.add("%s: has no key %q, or not a text", f.Path, gguf.KeyArchitecture)
		return
	}
	if image := diffusion.ByName(name); image != nil {
		images(image, files, all)
		return
	}
	a := arch.ForFile(m)
	if a == nil {
		all.note("%s: architecture %q is not known: keys and dimensions are not looked at", f.Path, name)
		return
	}
	if s, ok := kind.Str(); ok && s != "model" { // encoders and adapters have other tensors
		all.note("%s: is a %s: keys and dimensions are not looked at", f.Path, s)
		return
	}
	complete := keys(f, all)
	var list []shape.Tensor
	for _, f := range files {
		for i := range f.Tensors {
			list = append(list, shape.Tensor{Name: f.Tensors[i].Name, NE: f.Tensors[i].NE})
		}
	}
	if len(list) == 0 {
		return // a file with only a vocabulary
	}
	v, _ := m.Get(gguf.KeySplitCount)
	if n, _ := v.Int(); n > 1 && n != int64(len(files)) {
		return // what is declared depends on all tensors
	}
	has := func(name string) bool {
		return slices.ContainsFunc(files, func(f *gguf.File) bool { return f.Tensor(name) != nil })
	}
	if err := limits.CheckExperts(m, has); err != nil {
		all.add("%s: %v", f.Path, err)
	}
	if !complete || all.lost {
		return
	}
	errs, unknown := a.Check(m, list, nil)
	for _, err := range errs {
		all.add("%s: %v", f.Path, err)
	}
	for _, name := range unknown {
		all.note("%s: tensor %q: no part of the architecture %q reads it", f.Path, name, a.Name)
	}
}

// keys compares the keys of an architecture with the expected ones. It reports whether there are those of all files.
func keys(f *gguf.File, all *findings) (complete bool) {
	name := f.Metadata.Architecture()
	tables := arch.Tables(name)
	types, required := map[string][]gguf.ValueType{}, map[string]int{}
	for _, a := range tables {
		for key, r := range a.Rows() {
			if !r.Setting() {
				continue
			}
			types[key] = append(types[key], r.Type)
			if r.Required {
				required[key]++
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(types)) {
		switch v, ok := f.Metadata.Get(key); {
		case !ok && required[key] == len(tables):
			all.note("%s: has no key %q, which converted files have", f.Path, key)
		case ok && !slices.Contains(types[key], v.Type()) && v.Type() != gguf.ArrayType: // a value for each layer
			all.add("%s: key %q: type %v, want %v", f.Path, key, v.Type(), types[key][0])
		}
	}
	if err := limits.Check(f.Metadata); err != nil {
		all.add("%s: %v", f.Path, err)
	}
	complete = true
	for _, key := range []string{table.KeyBlockCount, "embedding_length", "context_length"} {
		if _, ok := f.Metadata.Get(gguf.ArchKey(name, key)); !ok && len(f.Tensors) > 0 {
			all.add("%s: has no key %q", f.Path, gguf.ArchKey(name, key))
			complete = false
		}
	}
	return complete
}

// tokens checks the vocabulary.
func tokens(f *gguf.File, all *findings) {
	const prefix = "tokenizer.ggml."
	list, ok := f.Metadata.Get(prefix + "tokens")
	if !ok {
		return
	}
	if list.Type() != gguf.ArrayType || list.ElemType() != gguf.StringType {
		all.add("%s: key %q: is %s, want an array of texts", f.Path, prefix+"tokens", list.Short())
		return
	}
	n := list.Len()
	for _, key := range []string{"scores", "token_type"} {
		if v, ok := f.Metadata.Get(prefix + key); ok && (v.Type() != gguf.ArrayType || v.Len() != n) {
			all.add("%s: key %q: %d values, but there are %d tokens", f.Path, prefix+key, v.Len(), n)
		}
	}
	of, _ := vocab.OutOfRange(f.Metadata)
	for _, kv := range of { // loaders use a default instead, and warn
		all.note("%s", outOfRange(f.Path, kv, n))
	}
	switch _, err := vocab.New(f.Metadata); {
	case errors.Is(err, fault.Unsupported):
		all.note("%s: vocabulary: %v", f.Path, err)
	case err != nil:
		all.add("%s: vocabulary: %v", f.Path, err)
	}
}
