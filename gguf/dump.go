package gguf

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DumpOptions says how much of a file a listing shows.
type DumpOptions struct {
	Full bool // long arrays and strings in full; otherwise their beginnings
}

// How much of a long value a short listing shows.
const (
	shortElems  = 6
	shortString = 160 // bytes
)

// totals returns the number of tensors, that of their elements, and the bits per
// weight.
func (s *Set) totals() (tensors int, elements int64, bpw float64) {
	for _, t := range s.Tensors() {
		tensors++
		elements += t.Elements()
	}
	return tensors, elements, BPW(func(yield func(*Tensor) bool) {
		for _, t := range s.Tensors() {
			if !yield(t) {
				return
			}
		}
	})
}

func (f *File) endianness() string {
	if f.BigEndian {
		return "big-endian"
	}
	return "little-endian"
}

// WriteText lists the structure of the model for people to read. Offsets are those
// in the data of a tensor's file; in a split model the number of the file, from 1,
// is in front.
func (s *Set) WriteText(w io.Writer, opt DumpOptions) error {
	b := bufio.NewWriter(w)
	for _, f := range s.Files {
		fmt.Fprintf(b, "%s: GGUF version %d, %s, alignment %d, data at %d, %d bytes\n", f.Path, f.Version, f.endianness(), f.Alignment, f.DataStart, f.Size)
	}
	width := 0
	for _, kv := range s.Metadata() {
		width = max(width, len(kv.Key))
	}
	fmt.Fprintf(b, "\nmetadata: %d pairs\n", len(s.Metadata()))
	for _, kv := range s.Metadata() {
		fmt.Fprintf(b, "  %-*s  %-4s %s\n", width, kv.Key, kv.Value.Type(), kv.Value.text(opt))
	}
	width = 0
	for _, t := range s.Tensors() {
		width = max(width, len(t.Name))
	}
	tensors, elements, bpw := s.totals()
	fmt.Fprintf(b, "\ntensors: %d, %d elements, %.4f bits per weight\n", tensors, elements, bpw)
	for shard, t := range s.Tensors() {
		at := fmt.Sprintf("at %12d", t.Offset)
		if len(s.Files) > 1 {
			at = fmt.Sprintf("file %3d at %12d", shard+1, t.Offset)
		}
		fmt.Fprintf(b, "  %-*s  %-7s  %-20s  %s  %12d bytes  %7.4f bpw\n", width, t.Name, t.Type, Shape(t.NE), at, t.Bytes(), t.bpw())
	}
	return b.Flush()
}

// bpw returns the bits per weight of the tensor: for an unknown type those that
// its data take.
func (t *Tensor) bpw() float64 {
	if t.Type.Known() {
		return t.Type.BPW()
	}
	return BPW(func(yield func(*Tensor) bool) { yield(t) })
}

// Shape returns dimensions as text, innermost first: "4096 x 128".
func Shape(ne []int64) string {
	var s []string
	for _, n := range ne {
		s = append(s, strconv.FormatInt(n, 10))
	}
	return strings.Join(s, " x ")
}

// text is String, shortened unless opt asks for all.
func (v Value) text(opt DumpOptions) string {
	switch {
	case v.typ == StringType && !opt.Full && len(v.raw) > shortString:
		return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(v.raw[:shortString]), len(v.raw))
	case v.typ == ArrayType:
		var b strings.Builder
		fmt.Fprintf(&b, "[%v x %d] ", v.elem, v.n)
		i := 0
		for e := range v.Elems() {
			if i > 0 {
				b.WriteString(", ")
			}
			if i == shortElems && !opt.Full {
				b.WriteString("...")
				break
			}
			b.WriteString(e.text(opt))
			i++
		}
		return b.String()
	}
	return v.String()
}

// The JSON form of a listing.
type (
	dumpFile struct {
		Path      string       `json:"path"`
		Version   uint32       `json:"version"`
		BigEndian bool         `json:"big_endian"`
		Alignment int64        `json:"alignment"`
		DataStart int64        `json:"data_start"`
		Size      int64        `json:"size"`             // of all files
		Shards    []dumpShard  `json:"shards,omitempty"` // of a split model
		Elements  int64        `json:"elements"`
		BPW       float64      `json:"bits_per_weight"`
		Metadata  []dumpKV     `json:"metadata"`
		Tensors   []dumpTensor `json:"tensors"`
	}
	dumpKV struct {
		Key       string `json:"key"`
		Type      string `json:"type"`
		ElemType  string `json:"element_type,omitempty"`
		Count     *int   `json:"count,omitempty"`
		Shortened bool   `json:"shortened,omitempty"`
		Value     any    `json:"value"`
	}
	dumpShard struct {
		Path      string `json:"path"`
		DataStart int64  `json:"data_start"`
		Size      int64  `json:"size"`
	}
	dumpTensor struct {
		Name   string  `json:"name"`
		Shard  *int    `json:"shard,omitempty"` // from 0, in a split model
		Type   string  `json:"type"`
		NE     []int64 `json:"ne"`
		Offset int64   `json:"offset"`
		Bytes  int64   `json:"bytes"`
		BPW    float64 `json:"bits_per_weight"`
	}
)

// WriteJSON lists the structure of the model as one JSON object. Strings that are not
// UTF-8 become {"hex": "..."}, floats that JSON lacks the strings "NaN", "+Inf"
// and "-Inf". Strings are never shortened, arrays unless opt asks for all.
func (s *Set) WriteJSON(w io.Writer, opt DumpOptions) error {
	f := s.Files[0]
	_, elements, bpw := s.totals()
	d := dumpFile{
		Path: f.Path, Version: f.Version, BigEndian: f.BigEndian, Alignment: f.Alignment, DataStart: f.DataStart, Size: s.Size(),
		Elements: elements, BPW: bpw, Metadata: []dumpKV{}, Tensors: []dumpTensor{},
	}
	split := len(s.Files) > 1
	if split {
		for _, f := range s.Files {
			d.Shards = append(d.Shards, dumpShard{f.Path, f.DataStart, f.Size})
		}
	}
	for _, kv := range f.Metadata {
		e := dumpKV{Key: kv.Key, Type: kv.Value.Type().String(), Value: kv.Value.json(opt)}
		if kv.Value.typ == ArrayType {
			n := kv.Value.n
			e.ElemType, e.Count, e.Shortened = kv.Value.elem.String(), &n, !opt.Full && n > shortElems
		}
		d.Metadata = append(d.Metadata, e)
	}
	for shard, t := range s.Tensors() {
		e := dumpTensor{Name: t.Name, Type: t.Type.String(), NE: t.NE, Offset: t.Offset, Bytes: t.Bytes(), BPW: t.bpw()}
		if split {
			e.Shard = &shard
		}
		d.Tensors = append(d.Tensors, e)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

// json returns the value as encoding/json takes it.
func (v Value) json(opt DumpOptions) any {
	switch v.typ {
	case StringType:
		if !utf8.ValidString(v.raw) {
			return map[string]string{"hex": hex.EncodeToString([]byte(v.raw))}
		}
		return v.raw
	case Float32Type, Float64Type:
		if f, _ := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return v.String()
		}
	case ArrayType:
		list := []any{}
		for e := range v.Elems() {
			if len(list) == shortElems && !opt.Full {
				break
			}
			list = append(list, e.json(opt))
		}
		return list
	}
	return json.RawMessage(v.String())
}
