package gguf

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DumpOptions selects the parts of a file that a listing shows.
type DumpOptions struct {
	Full bool // long arrays and strings in full; otherwise their beginnings
	// Tensors selects the tensors whose names it matches; nil for all.
	Tensors *regexp.Regexp
}

// listed yields the tensors that are listed, each with the number of its shard.
func (s *Set) listed(opt DumpOptions) iter.Seq2[int, *Tensor] {
	return func(yield func(int, *Tensor) bool) {
		for shard, t := range s.Tensors() {
			if (opt.Tensors == nil || opt.Tensors.MatchString(t.Name)) && !yield(shard, t) {
				return
			}
		}
	}
}

// The lengths to which a listing shortens values.
const (
	shortElems  = 6
	shortString = 160 // bytes
)

// totals returns the number of tensors and elements, and the bits per weight.
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

// WriteText lists the structure of the model as readable text. Offsets count from the start of
// the data of a tensor's file; in a split model the number of the file, from 1, comes before them.
func (s *Set) WriteText(w io.Writer, opt DumpOptions) error {
	b := bufio.NewWriter(w)
	for _, f := range s.Files {
		fmt.Fprintf(b, "%s: GGUF version %d, %s, alignment %d, data at %d, %d bytes\n", f.Path, f.Version,
			f.endianness(), f.Alignment, f.DataStart, f.Size)
	}
	width := 0
	for _, kv := range s.Metadata() {
		width = max(width, len(kv.Key))
	}
	fmt.Fprintf(b, "\nmetadata: %d pairs\n", len(s.Metadata()))
	for _, kv := range s.Metadata() {
		fmt.Fprintf(b, "  %-*s  %-4s ", width, kv.Key, kv.Value.Type())
		kv.Value.writeText(b, opt)
		b.WriteByte('\n')
	}
	width = 0
	for _, t := range s.listed(opt) {
		width = max(width, len(t.Name))
	}
	tensors, elements, bpw := s.totals()
	fmt.Fprintf(b, "\ntensors: %d, %d elements, %.4f bits per weight\n", tensors, elements, bpw)
	for shard, t := range s.listed(opt) {
		at := fmt.Sprintf("at %12d", t.Offset)
		if len(s.Files) > 1 {
			at = fmt.Sprintf("file %3d at %12d", shard+1, t.Offset)
		}
		fmt.Fprintf(b, "  %-*s  %-7s  %-20s  %s  %12d bytes  %7.4f bpw\n", width, t.Name, t.Type, Shape(t.NE), at,
			t.Bytes(), t.bpw())
	}
	return b.Flush()
}

// WriteMarkdown lists the structure of the model as tables of Markdown.
func (s *Set) WriteMarkdown(w io.Writer, opt DumpOptions) error {
	b := bufio.NewWriter(w)
	// characters that would end a cell or begin other markup
	cell := strings.NewReplacer("|", `\|`, "`", "'", "\r", " ", "\n", " ")
	fmt.Fprint(b, "| file | version | byte order | alignment | data at | bytes |\n| ---- | ------: | ---------- | "+
		"--------: | ------: | ----: |\n")
	for _, f := range s.Files {
		fmt.Fprintf(b, "| `%s` | %d | %s | %d | %d | %d |\n", cell.Replace(f.Path), f.Version, f.endianness(),
			f.Alignment, f.DataStart, f.Size)
	}
	fmt.Fprint(b, "\n| key | type | value |\n| --- | ---- | ----- |\n")
	for _, kv := range s.Metadata() {
		var text strings.Builder
		kv.Value.writeText(&text, opt)
		fmt.Fprintf(b, "| `%s` | %s | `%s` |\n", cell.Replace(kv.Key), kv.Value.Type(), cell.Replace(text.String()))
	}
	tensors, elements, bpw := s.totals()
	fmt.Fprintf(b, "\n%d tensors, %d elements, %.4f bits per weight\n\n", tensors, elements, bpw)
	fmt.Fprint(b, "| tensor | type | dimensions | bytes | bits per weight |\n| ------ | ---- | ---------- | ----: | "+
		"--------------: |\n")
	for _, t := range s.listed(opt) {
		fmt.Fprintf(b, "| `%s` | %s | %s | %d | %.4f |\n", cell.Replace(t.Name), t.Type, Shape(t.NE),
			t.Bytes(), t.bpw())
	}
	return b.Flush()
}

// WriteValue writes a value alone, in full: a string as it is, an array element by element, each
// in a line; with asJSON as JSON.
func WriteValue(w io.Writer, v Value, asJSON bool) error {
	if asJSON {
		j := jsonWriter{Writer: bufio.NewWriter(w)}
		j.value(v, "", DumpOptions{Full: true})
		j.WriteByte('\n')
		if j.err != nil {
			return j.err
		}
		return j.Flush()
	}
	b := bufio.NewWriter(w)
	line := func(v Value) {
		text := v.String()
		if s, ok := v.Str(); ok {
			text = s
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	if v.typ != ArrayType {
		line(v)
		return b.Flush()
	}
	for e := range v.Elems() {
		line(e)
	}
	return b.Flush()
}

// bpw returns the bits per weight of the tensor, for an unknown type by the size of its data.
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

// Short returns the value as text for messages; long arrays and strings are cut.
func (v Value) Short() string {
	var b strings.Builder
	v.writeText(&b, DumpOptions{})
	return b.String()
}

// writeText writes the value as String has it, with the type of an array, shortened
// unless opt asks for all.
func (v Value) writeText(w io.Writer, opt DumpOptions) {
	switch {
	case v.typ == StringType && !opt.Full && len(v.raw) > shortString:
		fmt.Fprintf(w, "%s... (%d bytes)", strconv.Quote(v.raw[:shortString]), len(v.raw))
	case v.typ == ArrayType:
		fmt.Fprintf(w, "[%v x %d] ", v.elem, v.n)
		i := 0
		for e := range v.Elems() {
			if i > 0 {
				io.WriteString(w, ", ")
			}
			if i == shortElems && !opt.Full {
				io.WriteString(w, "...")
				break
			}
			e.writeText(w, opt)
			i++
		}
	default:
		io.WriteString(w, v.String())
	}
}

// The JSON form of a listing.
type (
	dumpHead struct {
		Path      string      `json:"path"`
		Version   uint32      `json:"version"`
		BigEndian bool        `json:"big_endian"`
		Alignment int64       `json:"alignment"`
		DataStart int64       `json:"data_start"`
		Size      int64       `json:"size"`             // of all files
		Shards    []dumpShard `json:"shards,omitempty"` // of a split model
		Elements  int64       `json:"elements"`
		BPW       float64     `json:"bits_per_weight"`
	} // then "metadata", a list of dumpKV, and "tensors", one of dumpTensor
	dumpKV struct {
		Key       string `json:"key"`
		Type      string `json:"type"`
		ElemType  string `json:"element_type,omitempty"`
		Count     *int   `json:"count,omitempty"`
		Shortened bool   `json:"shortened,omitempty"`
	} // then "value"
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
//
// Values and tensors are written one by one: arrays of a hostile file would take
// many times its size as objects in memory.
func (s *Set) WriteJSON(w io.Writer, opt DumpOptions) error {
	f := s.Files[0]
	_, elements, bpw := s.totals()
	head := dumpHead{
		Path: f.Path, Version: f.Version, BigEndian: f.BigEndian, Alignment: f.Alignment, DataStart: f.DataStart,
		Size:     s.Size(),
		Elements: elements, BPW: bpw,
	}
	split := len(s.Files) > 1
	if split {
		for _, f := range s.Files {
			head.Shards = append(head.Shards, dumpShard{f.Path, f.DataStart, f.Size})
		}
	}
	j := jsonWriter{Writer: bufio.NewWriter(w)}
	j.open(head, "")
	j.list("  ", "metadata", func(yield func(func())) {
		for _, kv := range f.Metadata {
			e := dumpKV{Key: kv.Key, Type: kv.Value.Type().String()}
			if kv.Value.typ == ArrayType {
				n := kv.Value.n
				e.ElemType, e.Count, e.Shortened = kv.Value.elem.String(), &n, !opt.Full && n > shortElems
			}
			yield(func() {
				j.open(e, "    ")
				j.WriteString("      \"value\": ")
				j.value(kv.Value, "      ", opt)
				j.WriteString("\n    }")
			})
		}
	})
	j.WriteString(",\n")
	j.list("  ", "tensors", func(yield func(func())) {
		for shard, t := range s.listed(opt) {
			e := dumpTensor{Name: t.Name, Type: t.Type.String(), NE: t.NE, Offset: t.Offset, Bytes: t.Bytes(),
				BPW: t.bpw()}
			if split {
				e.Shard = &shard
			}
			yield(func() { j.WriteString(j.marshal(e, "    ")) })
		}
	})
	j.WriteString("\n}\n")
	if j.err != nil {
		return j.err
	}
	return j.Flush()
}

// jsonWriter writes indented JSON in pieces. It keeps the first error of encoding; Flush returns
// errors of writing.
type jsonWriter struct {
	*bufio.Writer
	err error
}

// marshal returns v, whose lines after the first begin with indent.
func (j *jsonWriter) marshal(v any, indent string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent(indent, "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && j.err == nil {
		j.err = err
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// open writes an object without its end, so that more members can follow.
func (j *jsonWriter) open(v any, indent string) {
	j.WriteString(strings.TrimSuffix(j.marshal(v, indent), "\n"+indent+"}"))
	j.WriteString(",\n")
}

// list writes a member that is a list; items yields a function for each element, which writes it.
func (j *jsonWriter) list(indent, name string, items func(yield func(func()))) {
	fmt.Fprintf(j, "%s%q: [", indent, name)
	i := 0
	items(func(write func()) {
		if i > 0 {
			j.WriteByte(',')
		}
		i++
		j.WriteString("\n" + indent + "  ")
		write()
	})
	if i > 0 {
		j.WriteString("\n" + indent)
	}
	j.WriteByte(']')
}

// value writes a metadata value.
func (j *jsonWriter) value(v Value, indent string, opt DumpOptions) {
	switch v.typ {
	case StringType:
		if !utf8.ValidString(v.raw) {
			j.WriteString(j.marshal(map[string]string{"hex": hex.EncodeToString([]byte(v.raw))}, indent))
			return
		}
		j.WriteString(j.marshal(v.raw, ""))
	case Float32Type, Float64Type:
		if f, _ := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			j.WriteString(strconv.Quote(v.String()))
			return
		}
		j.WriteString(v.String())
	case ArrayType:
		j.WriteByte('[')
		i := 0
		for e := range v.Elems() {
			if i == shortElems && !opt.Full {
				break
			}
			if i > 0 {
				j.WriteByte(',')
			}
			i++
			j.WriteString("\n" + indent + "  ")
			j.value(e, indent+"  ", opt)
		}
		if i > 0 {
			j.WriteString("\n" + indent)
		}
		j.WriteByte(']')
	default:
		j.WriteString(v.String())
	}
}
