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

// BPW returns the bits per weight over all tensors, 0 for a file without any.
func (f *File) BPW() float64 {
	var bytes, n int64
	for i := range f.Tensors {
		bytes += f.Tensors[i].Bytes()
		n += f.Tensors[i].Elements()
	}
	if n == 0 {
		return 0
	}
	return 8 * float64(bytes) / float64(n)
}

// Elements returns the number of elements of all tensors.
func (f *File) Elements() int64 {
	var n int64
	for i := range f.Tensors {
		n += f.Tensors[i].Elements()
	}
	return n
}

func (f *File) endianness() string {
	if f.BigEndian {
		return "big-endian"
	}
	return "little-endian"
}

// WriteText lists the file's structure for people to read.
func (f *File) WriteText(w io.Writer, opt DumpOptions) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s: GGUF version %d, %s, alignment %d, data at %d, %d bytes\n", f.Path, f.Version, f.endianness(), f.Alignment, f.DataStart, f.Size)
	width := 0
	for _, kv := range f.Metadata {
		width = max(width, len(kv.Key))
	}
	fmt.Fprintf(b, "\nmetadata: %d pairs\n", len(f.Metadata))
	for _, kv := range f.Metadata {
		fmt.Fprintf(b, "  %-*s  %-4s %s\n", width, kv.Key, kv.Value.Type(), kv.Value.text(opt))
	}
	width = 0
	for i := range f.Tensors {
		width = max(width, len(f.Tensors[i].Name))
	}
	fmt.Fprintf(b, "\ntensors: %d, %d elements, %.4f bits per weight\n", len(f.Tensors), f.Elements(), f.BPW())
	for i := range f.Tensors {
		t := &f.Tensors[i]
		fmt.Fprintf(b, "  %-*s  %-7s  %-20s  at %12d  %12d bytes  %7.4f bpw\n", width, t.Name, t.Type, Shape(t.NE), t.Offset, t.Bytes(), t.Type.BPW())
	}
	return b.Flush()
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
		Size      int64        `json:"size"`
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
	dumpTensor struct {
		Name   string  `json:"name"`
		Type   string  `json:"type"`
		NE     []int64 `json:"ne"`
		Offset int64   `json:"offset"`
		Bytes  int64   `json:"bytes"`
		BPW    float64 `json:"bits_per_weight"`
	}
)

// WriteJSON lists the file's structure as one JSON object. Strings that are not
// UTF-8 become {"hex": "..."}, floats that JSON lacks the strings "NaN", "+Inf"
// and "-Inf". Strings are never shortened, arrays unless opt asks for all.
func (f *File) WriteJSON(w io.Writer, opt DumpOptions) error {
	d := dumpFile{
		Path: f.Path, Version: f.Version, BigEndian: f.BigEndian, Alignment: f.Alignment, DataStart: f.DataStart, Size: f.Size,
		Elements: f.Elements(), BPW: f.BPW(), Metadata: []dumpKV{}, Tensors: []dumpTensor{},
	}
	for _, kv := range f.Metadata {
		e := dumpKV{Key: kv.Key, Type: kv.Value.Type().String(), Value: kv.Value.json(opt)}
		if kv.Value.typ == ArrayType {
			n := kv.Value.n
			e.ElemType, e.Count, e.Shortened = kv.Value.elem.String(), &n, !opt.Full && n > shortElems
		}
		d.Metadata = append(d.Metadata, e)
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		d.Tensors = append(d.Tensors, dumpTensor{t.Name, t.Type.String(), t.NE, t.Offset, t.Bytes(), t.Type.BPW()})
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
