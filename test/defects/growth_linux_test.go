package defects

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/checkpoint/torch"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/convert/general"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
	"ggforge/internal/kernel/cpu"
	"ggforge/internal/text/pyjson"
	"ggforge/quantize/allocate"
	"ggforge/tokenizer"
	"ggforge/tokenizer/vocab"
)

// list joins n texts.
func list(n int, sep, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(sep)
		}
		if strings.Contains(format, "%[1]") {
			fmt.Fprintf(&b, format, i)
		} else {
			b.WriteString(format)
		}
	}
	return b.String()
}

// load reads a tokenizer of one file.
func load(rules tokenizer.Rules, file string, make func(n int) string) reader {
	return reader{func(n int) []byte { return []byte(make(n)) }, func(data []byte) error {
		_, err := tokenizer.Load(fstest.MapFS{file: {Data: data}}, tokenizer.Options{Rules: rules, Pre: "gpt-2"})
		return err
	}}
}

// encode encodes a text, which may be one long word, with a vocabulary of the kind.
func encode(model, text string) reader {
	texts := []string{"<unk>", "<s>", "</s>", "a", "b", "aa", "ab", "aaaa", "▁", "▁a"}
	types := []int32{2, 3, 3, 1, 1, 1, 1, 1, 1, 1}
	for b := range 256 {
		texts, types = append(texts, fmt.Sprintf("<0x%02X>", b)), append(types, 6)
	}
	v, err := vocab.New(gguf.Metadata{
		{Key: "tokenizer.ggml.model", Value: gguf.String(model)},
		{Key: "tokenizer.ggml.pre", Value: gguf.String("gpt-2")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(texts)},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s(make([]float32, len(texts)))},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s(types)},
		{Key: "tokenizer.ggml.merges", Value: gguf.Strings([]string{"a a", "aa aa", "a b"})},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Uint32(2)},
		{Key: "tokenizer.ggml.unknown_token_id", Value: gguf.Uint32(0)},
	})
	return reader{func(n int) []byte { return []byte(strings.Repeat(text, n)) }, func(data []byte) error {
		if err != nil {
			return err
		}
		_, err := v.Encode(string(data), vocab.Options{ParseSpecial: true})
		return err
	}}
}

// A reader reads inputs that grow with n.
type reader struct {
	make func(n int) []byte
	read func(data []byte) error
}

// readers are the readers of inputs that may be long, each with inputs that are long in one way. Some inputs are broken
// at their ends, after the long part.
func readers() map[string]reader {
	parseGGUF := func(data []byte) error { _, err := gguf.Parse("x", data); return err }
	parseSafe := func(data []byte) error { _, err := safetensors.Parse("x", data); return err }
	parseImatrix := func(data []byte) error { _, err := imatrix.Parse("x", data); return err }
	parseTorch := func(data []byte) error { _, err := torch.ParseNested("x", data); return err }
	parseJSON := func(data []byte) error { _, err := pyjson.Parse(data); return err }
	card := func(data []byte) error {
		_, err := general.Load(fstest.MapFS{"README.md": {Data: data}}, "model", general.Options{})
		return err
	}
	text := func(make func(n int) string) func(int) []byte { return func(n int) []byte { return []byte(make(n)) } }
	entries := func(n int) (all []imatrixtest.Entry) {
		for i := range n {
			all = append(all, imatrixtest.Entry{Name: fmt.Sprintf("blk.%d.w", i), Sums: []float32{1},
				Counts: []float32{1}, Calls: 1})
		}
		return all
	}
	return map[string]reader{
		"gguf: pairs": {func(n int) []byte {
			h := begin(3, 0, uint64(n))
			for i := range n {
				h = h.key(fmt.Sprint("key", i), typeU32).u32(7)
			}
			return h.data(0)
		}, parseGGUF},
		"gguf: tensors": {func(n int) []byte {
			h := begin(3, uint64(n), 0)
			for i := range n {
				h = h.tensor(fmt.Sprintf("blk.%d.weight", i), tensorF32, uint64(i)*32, 8)
			}
			return h.data(32 * n)
		}, parseGGUF},
		"gguf: tensors backwards": {func(n int) []byte {
			h := begin(3, uint64(n), 0)
			for i := range n {
				h = h.tensor(fmt.Sprintf("blk.%d.weight", i), tensorF32, uint64(n-1-i)*32, 8)
			}
			return h.data(32 * n)
		}, parseGGUF},
		"gguf: strings of an array": {func(n int) []byte {
			h := begin(3, 0, 1).key("k", typeArr).u32(typeStr).u64(uint64(8 * n))
			for range 8 * n {
				h = h.str("x")
			}
			return h.data(0)
		}, parseGGUF},
		"gguf: arrays of an array": {func(n int) []byte {
			h := begin(3, 0, 1).key("k", typeArr).u32(typeArr).u64(uint64(8 * n))
			for range 8 * n {
				h = h.u32(typeU32).u64(0)
			}
			return h.data(0)
		}, parseGGUF},
		"safetensors: tensors": {text(func(n int) string {
			return string(safetensorstest.Raw([]byte("{"+list(n, ",",
				`"t%[1]d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`)+"}"), nil))
		}), parseSafe},
		"safetensors: metadata": {text(func(n int) string {
			return string(safetensorstest.Raw([]byte(`{"__metadata__":{`+list(n, ",", `"k%[1]d":"v"`)+"}}"), nil))
		}), parseSafe},
		"safetensors: escapes": {text(func(n int) string {
			return string(safetensorstest.Raw([]byte(`{"`+list(n, "", `\u00e9`)+`":{}}`), nil))
		}), parseSafe},
		"imatrix: gguf": {func(n int) []byte { return imatrixtest.GGUF(entries(n), []string{"text"}, 3) },
			parseImatrix},
		"imatrix: legacy":            {func(n int) []byte { return imatrixtest.Legacy(entries(n), nil) }, parseImatrix},
		"torch.save: tensors":        {func(n int) []byte { return torchfiletest.Encode(tensors(n)) }, parseTorch},
		"torch.save: older":          {func(n int) []byte { return torchfiletest.EncodeOld(tensors(n)) }, parseTorch},
		"torch.save: memo":           {func(n int) []byte { return memo(8 * n) }, parseTorch},
		"torch.save: a list copied":  {func(n int) []byte { return copied(16*n, 8*n) }, parseTorch},
		"torch.save: a shape copied": {func(n int) []byte { return shapes(60, 8*n) }, parseTorch},
		"torch.save: a long key, and members below it": {func(n int) []byte {
			return inside(func(p *torchfiletest.Pickle) {
				p.Str(strings.Repeat("k", 64*n)).Op('}').Op('(')
				for i := range n {
					p.Str(fmt.Sprint(i)).Op('N')
				}
				p.Op('u').Op('s')
			})
		}, parseTorch},
		"torch.save: a long key, and a list below it": {func(n int) []byte {
			return inside(func(p *torchfiletest.Pickle) {
				p.Str(strings.Repeat("k", 64*n)).Op(']').Op('(').Op('N',
					[]byte(strings.Repeat("N", 8*n-1))...).Op('e').Op('s')
			})
		}, parseTorch},
		"torch.save: a long key of many dicts": {func(n int) []byte {
			return inside(func(p *torchfiletest.Pickle) {
				p.Str(strings.Repeat("k", 64*n)).Op('q', 0).Op('N').Op('s')
				for i := range n {
					p.Str(fmt.Sprint(i)).Op('}').Op('h', 0).Op('N').Op('s').Op('s')
				}
			})
		}, parseTorch},
		"torch.save: a dict in many places": {func(n int) []byte {
			return inside(func(p *torchfiletest.Pickle) {
				p.Str("first").Op('}').Op('q', 0).Op('(')
				for i := range 8 * n {
					p.Str(fmt.Sprint(i)).Op('N')
				}
				p.Op('u').Op('s')
				for i := range 8 * n {
					p.Str(fmt.Sprint(i)).Op('h', 0).Op('s')
				}
			})
		}, parseTorch},
		"torch.save: states": {func(n int) []byte {
			return inside(func(p *torchfiletest.Pickle) {
				p.Op('}').Op('q', 0).Op('(')
				for i := range 8 * n {
					p.Str(fmt.Sprint(i)).Op('N')
				}
				p.Op('u').Op('0')
				for range 8 * n {
					p.Op('h', 0).Op('b')
				}
			})
		}, parseTorch},
		"torch.save: integers": {func(n int) []byte {
			return inside(func(p *torchfiletest.Pickle) {
				p.Str("k").Op(']').Op('(')
				for range n {
					p.Op(0x8a, append([]byte{255}, make([]byte, 255)...)...)
				}
				p.Op('e').Op('s')
			})
		}, parseTorch},
		"torch.save: lists": {func(n int) []byte {
			return torchfiletest.Zip(append([]byte{0x80, 2}, strings.Repeat("]", 64*n)...), nil, nil)
		}, parseTorch},
		"json: values":     {text(func(n int) string { return "[" + list(32*n, ",", "0") + "]" }), parseJSON},
		"json: members":    {text(func(n int) string { return "{" + list(8*n, ",", `"k%[1]d":0`) + "}" }), parseJSON},
		"json: one member": {text(func(n int) string { return "{" + list(8*n, ",", `"k":0`) + "}" }), parseJSON},
		"json: escapes":    {text(func(n int) string { return `"` + list(16*n, "", `\ud83d\ude00`) + `"` }), parseJSON},
		"json: digits":     {text(func(n int) string { return "0." + strings.Repeat("9", 64*n) }), parseJSON},
		"card: keys": {text(func(n int) string { return "---\n" + list(n, "\n", "k%[1]d: v") + "\n---\n" }),
			card},
		"card: list": {text(func(n int) string { return "---\ntags: [" + list(n, ",", "t%[1]d") + "]\n---\n" }),
			card},
		"card: aliases": {text(func(n int) string {
			return "---\na: &a [x]\nb: [" + list(n, ",", "*a") +
				"]\n---\n"
		}), card},
		"recipe: lines": {text(func(n int) string { return list(n, "\n", "blk.%[1]d.weight=Q4_K") }),
			func(data []byte) error { _, err := allocate.ParseRecipe("x", data); return err }},
		"tokenizer.model": load(tokenizer.Llama{}, "tokenizer.model", func(n int) string { return pieces(n, "") }),
		"tokenizer.model: many groups": load(tokenizer.Llama{}, "tokenizer.model", func(n int) string {
			return pieces(1, list(n, "", strings.Repeat("\x0b", 20)+strings.Repeat("\x0c", 20)))
		}),
		"tokenizer.json: tokens": load(tokenizer.BPE{}, "tokenizer.json", func(n int) string {
			return `{"model":{"type":"BPE","vocab":{` + list(n, ",", `"t%[1]d":%[1]d`) + `},"merges":[]}}`
		}),
		"tokenizer.json: merges": load(tokenizer.BPE{}, "tokenizer.json", func(n int) string {
			return `{"model":{"type":"BPE","vocab":{"a":0,` + list(n, ",", `"b%[1]d":1%[1]d,"ab%[1]d":2%[1]d`) +
				`},"merges":[` + list(n, ",", `"a b%[1]d"`) + `]}}`
		}),
		"tokenizer.json: added": load(tokenizer.BPE{}, "tokenizer.json", func(n int) string {
			return `{"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"added_tokens":[` +
				list(n, ",", `{"id":%[1]d,"content":"<%[1]d>","special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false}`) + `]}`
		}),
		"vocab.txt": load(tokenizer.WordPiece{}, "vocab.txt",
			func(n int) string { return "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\n" + list(n, "\n", "t%[1]d") }),
		"rwkv_vocab_v20230424.txt": load(tokenizer.RWKVWorld{}, "rwkv_vocab_v20230424.txt", func(n int) string {
			return list(n, "\n", "%[1]d 't%07[1]d' 8")
		}),
		"qwen.tiktoken": load(tokenizer.Tiktoken{File: "qwen.tiktoken", Words: `.`, AllMerges: true}, "qwen.tiktoken", func(n int) string {
			var b strings.Builder
			for i := range n {
				raw := []byte{byte(i)}
				if i >= 256 {
					raw = binary.BigEndian.AppendUint16(nil, uint16(i-256))
				}
				fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(raw), i)
			}
			return b.String()
		}),
		"text: one word, llama":        encode("llama", "a"),
		"text: one word, gpt2":         encode("gpt2", "a"),
		"text: one word, bert":         encode("bert", "a"),
		"text: one word, t5":           encode("t5", "a"),
		"text: blanks, gpt2":           encode("gpt2", " "),
		"text: special tokens, llama":  encode("llama", "<s>"),
		"text: almost special, llama":  encode("llama", "<s"),
		"text: broken UTF-8, gpt2":     encode("gpt2", "\xff"),
		"text: combining marks, bert":  encode("bert", "\u0301"),
		"text: merges in turn, gpt2":   encode("gpt2", "ab"),
		"text: not in the vocab, gpt2": encode("gpt2", "é"),
	}
}

// tensors are n tensors for torch.save.
func tensors(n int) (all []torchfiletest.Tensor) {
	for i := range n {
		all = append(all, torchfiletest.Tensor{Name: fmt.Sprintf("t%d", i), DType: safetensors.F32, Shape: []int64{1},
			Data: make([]byte, 4)})
	}
	return all
}

// inside is a dict with the members that add writes.
func inside(add func(p *torchfiletest.Pickle)) []byte {
	p := new(torchfiletest.Pickle).Op(0x80, 2).Op('}')
	add(p)
	return torchfiletest.Zip(p.Op('.').Bytes(), nil, nil)
}

// copied is a pickle that makes a list of n pairs into a dict, again and again.
func copied(n, times int) []byte {
	return inside(func(p *torchfiletest.Pickle) {
		p.Op('N').Op('N').Op(0x86).Op('q', 0).Op('0')
		p.Global("collections", "OrderedDict").Op('q', 1).Op('0').Op(']').Op('(')
		for range n {
			p.Op('h', 0)
		}
		p.Op('e').Op(0x85).Op('q', 2).Op('0').Str("k").Op(']').Op('(')
		for range times {
			p.Op('h', 1).Op('h', 2).Op('R')
		}
		p.Op('e').Op('s')
	})
}

// shapes is a pickle with many tensors of one shape.
func shapes(dims, times int) []byte {
	p := new(torchfiletest.Pickle).Op(0x80, 2).Op('}')
	p.Ints(slices.Repeat([]int64{1}, dims)).Op('q', 0).Op('0')
	p.Global("torch._utils", "_rebuild_tensor_v2").Op('q', 1).Op('0')
	p.Op('(').Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(1).Op('t').Op('Q').Int(0).Op('h', 0).Op('h',
		0).Op('t').Op('q', 2).Op('0')
	for i := range times {
		p.Str(fmt.Sprint(i)).Op('h', 1).Op('h', 2).Op('R').Op('s')
	}
	return torchfiletest.Zip(p.Op('.').Bytes(), []string{"0"}, map[string][]byte{"0": make([]byte, 4)})
}

// memo is a pickle that remembers n values, and names each again.
func memo(n int) []byte {
	p := new(torchfiletest.Pickle).Op(0x80, 2).Op('}')
	for i := range n {
		p.Op('r', binary.LittleEndian.AppendUint32(nil, uint32(i))...).Op('j',
			binary.LittleEndian.AppendUint32(nil, uint32(i))...).Op('0')
	}
	return torchfiletest.Zip(p.Op('.').Bytes(), nil, nil)
}

// pieces is a SentencePiece model of n pieces, followed by more.
func pieces(n int, more string) string {
	var b strings.Builder
	b.WriteString("\x0a\x0e\x0a\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
	for i := range n {
		text := fmt.Sprintf("p%08d", i)
		fmt.Fprintf(&b, "\x0a%c\x0a%c%s\x15\x00\x00\x00\x00", len(text)+7, len(text), text)
	}
	return b.String() + more
}

// spent returns the processor time of this thread: other programs on the machine do not count.
func spent() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// TestGrowth reads inputs of n and of 8 n elements. All allocations, freed or not, are at most a small multiple of the
// input; and 8 times the input takes less than 32 times as long, half of what quadratic work would take. With GROWTH in
// the environment it prints the table of docs/reliability.md.
func TestGrowth(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("in the build with vector kernels")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	report := os.Getenv("GROWTH") != ""
	all := readers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		const n, times, fixed = 500, 8, 1 << 20
		small, large := r.make(n), r.make(n*times)
		// Without collections of garbage, and each time the least of several runs: other programs on the machine make
		// single runs several times as long, quadratic work makes all of them so.
		cost := func(data []byte, least *time.Duration) (bytes uint64, err error) {
			runtime.GC()
			before, start := Allocated(), spent()
			err = r.read(data)
			*least = min(*least, spent()-start)
			return Allocated() - before, err
		}
		short, long := time.Hour, time.Hour
		var bytes uint64
		var ratio float64
		for round := 0; round < 3 || round < 30 && ratio > 4*times; round++ {
			_, shortErr := cost(small, &short)
			b, err := cost(large, &long)
			if (err == nil) != (shortErr == nil) {
				t.Fatalf("%s: %v for a short input, %v for a long one", name, shortErr, err)
			}
			bytes, ratio = b, float64(long)/float64(max(short, 50*time.Microsecond))
		}
		per := float64(bytes) / float64(len(large))
		if ratio > 4*times {
			t.Errorf("%s: %d bytes take %v, %d take %v: %.0f times as long", name, len(small), short,
				len(large), long, ratio)
		}
		// Front matter of cards and expressions of recipes become trees of a library, each letter of a text becomes a
		// symbol of the encoder.
		most := uint64(160)
		if strings.HasPrefix(name, "text") {
			most = 400
		}
		if bytes > most*uint64(len(large))+fixed {
			t.Errorf("%s: %d bytes of input, %.1f times as many allocated", name, len(large), per)
		}
		if report {
			fmt.Printf("| %s | %d | %.1f | %.1f |\n", name, len(large), per, ratio)
		}
	}
}
