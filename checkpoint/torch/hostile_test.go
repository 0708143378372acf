package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
)

type asm = torchfiletest.Pickle

// tensorOf writes a tensor of 4 F32 in storage "0" with the given arguments.
func tensorOf(p *asm, offset int64, shape, strides []int64) *asm {
	p.Global("torch._utils", "_rebuild_tensor_v2").Op('(').Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(4).Op('t').Op('Q')
	return p.Int(offset).Ints(shape).Ints(strides).Op(0x89).Op('}').Op('t').Op('R')
}

func start() *asm { return new(asm).Op(0x80, 2) }

// hostile are pickles that Parse must refuse, with the error's kind and a part of its text.
var hostile = []struct {
	name   string
	pickle *asm
	kind   error
	text   string
}{
	{"os.system", start().Global("os", "system").Op('(').Str("touch /tmp/x").Op('t').Op('R').Op('.'), ErrRefused,
		`names "os.system"`},
	{"posix.system in a dict", start().Op('}').Str("w").Global("posix",
		"system").Op('(').Str("id").Op('t').Op('R').Op('s').Op('.'), ErrRefused, `names "posix.system"`},
	{"builtins.eval", start().Global("builtins", "eval").Op('(').Str("1").Op('t').Op('R').Op('.'), ErrRefused,
		`names "builtins.eval"`},
	{"__builtin__.exec", start().Global("__builtin__", "exec").Op('.'), ErrRefused, `names "__builtin__.exec"`},
	{"builtins.getattr", start().Global("builtins", "getattr").Op('.'), ErrRefused, `builtins.getattr`},
	{"torch.load", start().Global("torch", "load").Op('.'), ErrRefused, `torch.load`},
	{"torch.storage._load_from_bytes", start().Global("torch.storage", "_load_from_bytes").Op('.'), ErrRefused,
		`_load_from_bytes`},
	{"numpy", start().Global("numpy.core.multiarray", "_reconstruct").Op('.'), ErrRefused,
		`numpy.core.multiarray._reconstruct`},
	{"subprocess by STACK_GLOBAL", start().Str("subprocess").Str("Popen").Op(0x93).Op('.'), ErrRefused,
		`subprocess.Popen`},
	{"a name with dots in it", start().Str("torch._utils").Str("_rebuild_tensor.__globals__").Op(0x93).Op('.'),
		ErrRefused, `__globals__`},
	{"STACK_GLOBAL of numbers", start().Int(1).Int(2).Op(0x93).Op('.'), ErrBroken, "want strings"},
	{"a storage class called", start().Global("torch", "FloatStorage").Op(')').Op('R').Op('.'), ErrRefused,
		"calls a type"},
	{"a string called", start().Str("x").Op(')').Op('R').Op('.'), ErrRefused, "calls a string"},
	{"called with a list", start().Global("collections", "OrderedDict").Op(']').Op('R').Op('.'), ErrBroken,
		"want a tuple"},
	{"OrderedDict of a dict", start().Global("collections", "OrderedDict").Op('}').Op(0x85).Op('R').Op('.'), ErrBroken,
		"want nothing or a list"},
	{"OrderedDict of odd pairs", start().Global("collections",
		"OrderedDict").Op(']').Int(1).Op('a').Op(0x85).Op('R').Op('.'), ErrBroken, "want pairs"},
	{"INST", start().Op('(').Op('i', []byte("os\nsystem\n")...).Op('.'), ErrRefused, "INST"},
	{"OBJ", start().Op('(').Global("collections", "OrderedDict").Op('o').Op('.'), ErrRefused, "OBJ"},
	{"NEWOBJ", start().Global("collections", "OrderedDict").Op(')').Op(0x81).Op('.'), ErrRefused, "NEWOBJ"},
	{"NEWOBJ_EX", start().Op(0x92), ErrRefused, "NEWOBJ_EX"},
	{"EXT1", start().Op(0x82, 1).Op('.'), ErrRefused, "EXT1"},
	{"EXT2", start().Op(0x83, 1, 0).Op('.'), ErrRefused, "EXT2"},
	{"EXT4", start().Op(0x84, 1, 0, 0, 0).Op('.'), ErrRefused, "EXT4"},
	{"PERSID", start().Op('P', []byte("x\n")...).Op('.'), ErrRefused, "PERSID"},
	{"bytes of an archive", start().Op('B', 0xff, 0xff, 0xff, 0x7f).Op('.'), ErrRefused, "BINBYTES"},
	{"no instruction", start().Op(0xfe).Op('.'), ErrBroken, "0xfe is no instruction"},
	{"protocol 0", new(asm).Op(0x80, 0).Op('.'), ErrUnsupported, "protocol 0"},
	{"protocol 9", new(asm).Op(0x80, 9).Op('.'), ErrUnsupported, "protocol 9"},
	{"BUILD of a tensor", tensorOf(start(), 0, []int64{4}, []int64{1}).Op('}').Op('b').Op('.'), ErrRefused,
		"sets the state of a tensor"},
	{"BUILD of a class", start().Global("torch", "FloatStorage").Op('}').Op('b').Op('.'), ErrRefused,
		"sets the state of a type"},
	{"BUILD with a tuple", start().Op('}').Op(')').Op('b').Op('.'), ErrBroken, "want a dict"},
	{"empty", new(asm), ErrBroken, "cut off"},
	{"nothing on the stack", start().Op('.'), ErrBroken, "empty stack"},
	{"two values left", start().Op('}').Op('}').Op('.'), ErrBroken, "1 values on its stack"},
	{"a mark left", start().Op('}').Op('(').Op('}').Op('.'), ErrBroken, "on its stack"},
	{"POP of nothing", start().Op('0').Op('.'), ErrBroken, "empty stack"},
	{"POP through a mark", start().Op('}').Op('(').Op('0').Op('.'), ErrBroken, "empty stack"},
	{"TUPLE without a mark", start().Op('t').Op('.'), ErrBroken, "mark that is not there"},
	{"TUPLE2 of one", start().Op('N').Op(0x86).Op('.'), ErrBroken, "takes 2 values from a stack of 1"},
	{"APPEND to a dict", start().Op('}').Op('N').Op('a').Op('.'), ErrBroken, "puts items into a dict"},
	{"SETITEM into a list", start().Op(']').Op('N').Op('N').Op('s').Op('.'), ErrBroken, "puts items into a list"},
	{"SETITEMS of one", start().Op('}').Op('(').Op('N').Op('u').Op('.'), ErrBroken, "a key without a value"},
	{"SETITEM into a tuple", start().Op(')').Op('N').Op('N').Op('s').Op('.'), ErrBroken, "puts items into a tuple"},
	{"a memo that is not there", start().Op('h', 7).Op('.'), ErrBroken, "value 7 of its memo"},
	{"a memo far away", start().Op('j', 0xff, 0xff, 0xff, 0xff).Op('.'), ErrBroken, "value 4294967295 of its memo"},
	{"a memo of nothing", start().Op('q', 0).Op('.'), ErrBroken, "empty stack"},
	{"a long string", start().Op('X', 0xff, 0xff, 0xff, 0xff).Op('.'), ErrBroken, "want 4294967295"},
	{"a longer string", start().Op(0x8d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff).Op('.'), ErrBroken,
		"want 18446744073709551615"},
	{"a global without an end", start().Op('c', bytes.Repeat([]byte("a"), 2000)...).Op('.'), ErrBroken,
		"no end of a line"},
	{"a number cut off", start().Op('J', 1, 2), ErrBroken, "cut off"},
	{"a list in itself", start().Op(']').Op('q', 0).Op('h', 0).Op('a').Op('.'), ErrUnsupported, "holds a list"},
	{"a dict in itself", start().Op('}').Op('q', 0).Str("w").Op('h', 0).Op('s').Op('.'), ErrUnsupported,
		`"w" is a dict`},
	{"a number", start().Int(5).Op('.'), ErrUnsupported, "holds an integer"},
	{"a bare tensor", tensorOf(start(), 0, []int64{4}, []int64{1}).Op('.'), ErrUnsupported, "holds a tensor"},
	{"a state inside a dict", start().Op('}').Str("state_dict").Op('}').Op('s').Op('.'), ErrUnsupported,
		`"state_dict" is a dict, want a tensor`},
	{"a number among tensors", start().Op('}').Str("epoch").Int(3).Op('s').Op('.'), ErrUnsupported,
		`"epoch" is an integer`},
	{"a key that is a number", tensorOf(start().Op('}').Int(3), 0, []int64{4}, []int64{1}).Op('s').Op('.'), ErrBroken,
		"an integer among its keys"},
	{"a key that is a tuple", tensorOf(start().Op('}').Op(')'), 0, []int64{4}, []int64{1}).Op('s').Op('.'), ErrBroken,
		"a tuple among its keys"},
	{"an empty key", tensorOf(start().Op('}').Str(""), 0, []int64{4}, []int64{1}).Op('s').Op('.'), ErrBroken,
		"its name is empty"},
	{"a key with a NUL", tensorOf(start().Op('}').Str("a\x00b"), 0, []int64{4}, []int64{1}).Op('s').Op('.'), ErrBroken,
		"holds a NUL"},
	{"a key that is not UTF-8", tensorOf(start().Op('}').Str("a\xff"), 0, []int64{4}, []int64{1}).Op('s').Op('.'),
		ErrBroken, "not UTF-8"},
	{"a key twice", tensorOf(tensorOf(start().Op('}').Str("w"), 0, []int64{4}, []int64{1}).Op('s').Str("w"), 0,
		[]int64{4}, []int64{1}).Op('s').Op('.'), ErrBroken, "in the dict twice"},

	{"an offset beyond the storage", tensorOf(start(), 5, []int64{1}, []int64{1}).Op('.'), ErrBroken,
		"offset 5, the storage has 4"},
	{"a negative offset", tensorOf(start(), -1, []int64{1}, []int64{1}).Op('.'), ErrBroken, "offset -1"},
	{"an offset of 2^62", tensorOf(start(), 1<<62, []int64{1}, []int64{1}).Op('.'), ErrBroken,
		"offset 4611686018427387904"},
	{"one element too many", tensorOf(start(), 1, []int64{4}, []int64{1}).Op('.'), ErrBroken, "lead to element 4"},
	{"a stride out of the storage", tensorOf(start(), 0, []int64{2, 2}, []int64{3, 1}).Op('.'), ErrBroken,
		"lead to element 4"},
	{"a stride of 2^62", tensorOf(start(), 0, []int64{3}, []int64{1 << 62}).Op('.'), ErrBroken,
		"leads out of the storage"},
	{"strides that overflow together", tensorOf(start(), 0, []int64{2, 2, 2},
		[]int64{1 << 62, 1 << 62, 1 << 62}).Op('.'), ErrBroken, "leads out"},
	{"a negative stride", tensorOf(start(), 3, []int64{4}, []int64{-1}).Op('.'), ErrBroken, "stride -1 is negative"},
	{"a negative dimension", tensorOf(start(), 0, []int64{-4}, []int64{1}).Op('.'), ErrBroken,
		"dimension -4 is negative"},
	{"dimensions that overflow", tensorOf(start(), 0, []int64{1 << 32, 1 << 32}, []int64{0, 0}).Op('.'), ErrBroken,
		"overflows"},
	{"an element repeated", tensorOf(start(), 0, []int64{1 << 40}, []int64{0}).Op('.'), ErrBroken,
		"elements repeat those"},
	{"fewer strides", tensorOf(start(), 0, []int64{2, 2}, []int64{1}).Op('.'), ErrBroken, "2 dimensions and 1 strides"},
	{"many dimensions", tensorOf(start(), 0, make([]int64, 65), make([]int64, 65)).Op('.'), ErrUnsupported,
		"65 dimensions"},
	{"a shape of strings", start().Global("torch._utils",
		"_rebuild_tensor_v2").Op('(').Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(4).Op('t').Op('Q').
		Int(0).Op('(').Str("4").Op('t').Op(')').Op(0x89).Op('}').Op('t').Op('R').Op('.'), ErrBroken,
		"tuples of integers"},
	{"a tensor of no storage", start().Global("torch._utils",
		"_rebuild_tensor_v2").Op('(').Str("0").Int(0).Op(')').Op(')').Op('t').Op('R').Op('.'), ErrBroken,
		"want a storage"},
	{"a tensor of two arguments", start().Global("torch._utils",
		"_rebuild_tensor_v2").Op('(').Int(0).Op(')').Op('t').Op('R').Op('.'), ErrBroken, "2 arguments"},
	{"a tensor of nine arguments", start().Global("torch._utils",
		"_rebuild_tensor_v3").Op('(').Op('N').Op('N').Op('N').Op('N').Op('N').Op('N').Op('N').Op('N').Op('N').Op(
		't').Op('R').Op('.'), ErrBroken, "9 arguments"},
	{"a negated tensor", start().Global("torch._utils",
		"_rebuild_tensor_v2").Op('(').Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(4).Op('t').Op('Q').
		Int(0).Op(')').Op(')').Op(0x89).Op('}').Op('}').Str("neg").Op(0x88).Op('s').Op('t').Op('R').Op('.'),
		ErrUnsupported, "metadata"},
	{"a parameter of a string", start().Global("torch._utils",
		"_rebuild_parameter").Op('(').Str("x").Op(0x88).Op('}').Op('t').Op('R').Op('.'), ErrBroken, "want a tensor"},
	{"a parameter of nothing", start().Global("torch._utils", "_rebuild_parameter").Op(')').Op('R').Op('.'), ErrBroken,
		"0 arguments"},
	{"a type in a typed storage", start().Global("torch._utils",
		"_rebuild_tensor_v3").Op('(').Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(4).Op('t').Op('Q').
		Int(0).Op(')').Op(')').Op(0x89).Op('}').Global("torch", "float8_e4m3fn").Op('t').Op('R').Op('.'), ErrBroken,
		"in a storage of F32"},
	{"no type in an untyped storage", start().Global("torch._utils",
		"_rebuild_tensor_v2").Op('(').Op('(').Str("storage").Global("torch.storage",
		"UntypedStorage").Str("0").Str("cpu").Int(4).Op('t').Op('Q').
		Int(0).Op(')').Op(')').Op(0x89).Op('}').Op('t').Op('R').Op('.'), ErrBroken, "without a type"},

	{"a persistent ID that is a string", start().Str("storage").Op('Q').Op('.'), ErrBroken,
		"a persistent ID is a string"},
	{"a persistent ID of a module", start().Op('(').Str("module").Op('N').Op('N').Op('N').Op('N').Op('t').Op('Q').Op(
		'.'), ErrBroken, "persistent ID"},
	{"a storage of a string", start().Op('(').Str("storage").Str("FloatStorage").Str("0").Str("cpu").Int(4).Op('t').Op(
		'Q').Op('.'), ErrBroken, "want a class"},
	{"a storage of -1 elements", start().Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(-1).Op('t').Op('Q').Op('.'), ErrBroken, "-1 elements"},
	{"a storage of 2^62 elements", start().Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(1 << 62).Op('t').Op('Q').Op('.'), ErrBroken,
		"4611686018427387904 elements"},
	{"a storage of two types", start().Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(4).Op('t').Op('Q').Op('0').
		Op('(').Str("storage").Global("torch", "HalfStorage").Str("0").Str("cpu").Int(8).Op('t').Op('Q').Op('.'),
		ErrBroken, "and before 4 of F32"},
	{"a part of a storage", start().Op('(').Str("storage").Global("torch",
		"FloatStorage").Str("0").Str("cpu").Int(4).Op(')').Op('t').Op('Q').Op('.'), ErrUnsupported,
		"part of another one"},
	{"a class of storages that is not known", start().Global("torch", "QInt8Storage").Op('.'), ErrRefused,
		"torch.QInt8Storage"},
}

func TestHostilePickles(t *testing.T) {
	for _, h := range hostile {
		data := torchfiletest.Zip(h.pickle.Bytes(), []string{"0"}, map[string][]byte{"0": make([]byte, 16)})
		_, err := Parse("x", data)
		if !errors.Is(err, h.kind) || !strings.Contains(err.Error(), h.text) {
			t.Errorf("%s: %v, want %v with %q", h.name, err, h.kind, h.text)
		}
		if _, read := readParts(t, data, t.TempDir(), ReadFrom); read == nil || read.Error() != err.Error() {
			t.Errorf("%s: read %v, parsed %v", h.name, read, err)
		}
	}
}

// good is the smallest dict.
func good() *asm {
	return tensorOf(start().Op('}').Str("w"), 0, []int64{4}, []int64{1}).Op('s').Op('.')
}

// TestHostileArchives checks that inconsistent zip files are refused.
func TestHostileArchives(t *testing.T) {
	data := map[string][]byte{"0": make([]byte, 16)}
	whole := torchfiletest.Zip(good().Bytes(), []string{"0"}, data)
	if _, err := Parse("x", whole); err != nil {
		t.Fatal(err)
	}
	end := bytes.LastIndex(whole, []byte("PK\x05\x06"))
	dir := int(binary.LittleEndian.Uint32(whole[end+16:]))
	// in the directory
	row := func(name string) int { return bytes.LastIndex(whole, []byte("archive/"+name)) - directoryHead }
	edit := func(at int, bytes ...byte) []byte {
		d := append([]byte(nil), whole...)
		copy(d[at:], bytes)
		return d
	}
	// with an extra field and an end for large files
	zip64 := func(entries, size, off uint64) []byte {
		d := append([]byte(nil), whole[:end]...)
		e := make([]byte, end64Head)
		copy(e, "PK\x06\x06")
		binary.LittleEndian.PutUint64(e[32:], entries)
		binary.LittleEndian.PutUint64(e[40:], size)
		binary.LittleEndian.PutUint64(e[48:], off)
		d = append(d, e...)
		d = append(d, "PK\x06\x07\x00\x00\x00\x00"...)
		d = binary.LittleEndian.AppendUint64(d, uint64(end))
		d = append(d, 1, 0, 0, 0)
		tail := append([]byte(nil), whole[end:]...)
		copy(tail[8:], bytes.Repeat([]byte{0xff}, 12))
		return append(d, tail...)
	}
	if _, err := Parse("x", zip64(4, uint64(end-dir), uint64(dir))); err != nil {
		t.Errorf("an archive with an end for large files: %v", err)
	}
	for _, h := range []struct {
		name string
		data []byte
		kind error
		text string
	}{
		{"nothing", nil, ErrBroken, "is this a file of PyTorch"},
		{"text", []byte("hello"), ErrBroken, "is this a file of PyTorch"},
		{"a pointer of LFS", []byte("version https://git-lfs.github.com/spec/v1\n"), ErrBroken, "Git LFS pointer"},
		{"a tar archive", append(append(make([]byte, 257), "ustar\x00"...), make([]byte, 300)...), ErrUnsupported,
			"tar archive"},
		{"cut off", whole[:end], ErrBroken, "no end of a directory"},
		{"cut off in the middle", whole[:len(whole)/2], ErrBroken, "no end of a directory"},
		{"bytes after the end", append(append([]byte(nil), whole...), 1), ErrBroken, "follow its end"},
		{"compressed", edit(row("data/0")+10, 8), ErrUnsupported, "compressed (method 8)"},
		{"a bomb: compressed pickle", edit(row("data.pkl")+10, 8), ErrUnsupported, "compressed (method 8)"},
		{"compressed at its place only", edit(bytes.Index(whole, []byte("archive/data/0"))-entryHead+8, 8), ErrBroken,
			"at its place, and not in the directory"},
		{"encrypted", edit(row("data/0")+8, 1), ErrUnsupported, "encrypted"},
		{"of two sizes", edit(row("data/0")+24, 99), ErrBroken, "16 bytes in the archive and 99"},
		{"too large", edit(row("data/0")+20, 0, 0, 0, 1, 0, 0, 0, 1), ErrBroken, "the directory begins at"},
		{"larger than the storage", edit(row("data/0")+20, 17, 0, 0, 0, 17), ErrBroken,
			"is 17 bytes long, the pickle says 16"},
		{"large without sizes", edit(row("data/0")+20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ErrBroken,
			"no extra field"},
		{"another entry at its place", edit(row("data/0")+42, 0, 0, 0, 0), ErrBroken, "has the name"},
		{"nothing at its place", edit(row("data/0")+42, 3, 0, 0, 0), ErrBroken, "is not at byte 3"},
		{"beyond the file", edit(row("data/0")+42, 0xf0, 0xff, 0xff, 0x7f), ErrBroken, "is not at byte"},
		{"more entries than promised", edit(end+10, 3, 0), ErrBroken, "more than the 3 entries"},
		{"fewer entries than promised", edit(end+10, 9, 0), ErrBroken, "it promises 9"},
		{"a directory somewhere else", edit(end+16, 0, 0, 0, 0), ErrBroken, "but ends at byte"},
		{"a directory of 4 GB", edit(end+12, 0xfe, 0xff, 0xff, 0xff), ErrBroken, "but ends at byte"},
		{"several parts", edit(end+4, 1), ErrUnsupported, "several parts"},
		{"64 bits: too many entries", zip64(1<<60, uint64(end-dir), uint64(dir)), ErrUnsupported,
			"entries, want at most"},
		{"64 bits: a large directory", zip64(4, 1<<63, uint64(dir)), ErrBroken, "but ends at byte"},
		{"64 bits: sum overflows", zip64(4, 1<<63+uint64(end), 1<<63), ErrBroken, "but ends at byte"},
		{"no pickle", torchfiletest.Archive([]torchfiletest.Entry{{Name: "a/version", Data: []byte("3")}}), ErrBroken,
			"no data.pkl"},
		{"an empty archive", torchfiletest.Archive(nil), ErrBroken, "is this a file of PyTorch"},
		{"two pickles", torchfiletest.Archive([]torchfiletest.Entry{{Name: "a/data.pkl", Data: good().Bytes()},
			{Name: "b/data.pkl", Data: good().Bytes()}}), ErrBroken, "two pickles"},
		{"a pickle twice", torchfiletest.Archive([]torchfiletest.Entry{{Name: "a/data.pkl", Data: good().Bytes()},
			{Name: "a/data.pkl", Data: good().Bytes()}}), ErrBroken, "in the archive twice"},
		{"bytes after the pickle", torchfiletest.Zip(append(good().Bytes(), 1), []string{"0"}, data), ErrBroken,
			"1 bytes follow its end"},
		{"no storage", torchfiletest.Zip(good().Bytes(), nil, nil), ErrBroken, `storage "0": is not in the file`},
		{"a small storage", torchfiletest.Zip(good().Bytes(), []string{"0"}, map[string][]byte{"0": make([]byte, 8)}),
			ErrBroken, "is 8 bytes long, the pickle says 16"},
		{"TorchScript", torchfiletest.Archive([]torchfiletest.Entry{{Name: "a/data.pkl", Data: good().Bytes()},
			{Name: "a/constants.pkl"}}), ErrUnsupported, "TorchScript"},
		{"big-endian", torchfiletest.Archive([]torchfiletest.Entry{{Name: "a/data.pkl", Data: good().Bytes()},
			{Name: "a/byteorder", Data: []byte("big")}}), ErrUnsupported, `byte order is "big"`},
	} {
		_, err := Parse("x", h.data)
		if !errors.Is(err, h.kind) || !strings.Contains(err.Error(), h.text) {
			t.Errorf("%s: %v, want %v with %q", h.name, err, h.kind, h.text)
		}
		text := h.text
		// reading by parts detects it before it reads the entry's header
		if h.name == "another entry at its place" || h.name == "nothing at its place" {
			text = "overlaps"
		}
		if _, err := readParts(t, h.data, t.TempDir(), ReadFrom); !errors.Is(err, h.kind) ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%s, read part by part: %v, want %v with %q", h.name, err, h.kind, text)
		}
	}
	// two directory rows for one entry, with different names
	twice := append([]byte(nil), whole...)
	copy(twice[bytes.Index(whole, []byte("archive/version"))-entryHead:], "XX") // no longer an entry
	if _, err := Parse("x", twice); !errors.Is(err, ErrBroken) {
		t.Errorf("an entry without its mark: %v", err)
	}
}

// TestHostileOld checks that inconsistent files of the format before zip are refused.
func TestHostileOld(t *testing.T) {
	list := []torchfiletest.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{4}, Data: make([]byte, 16)}}
	whole := torchfiletest.EncodeOld(list)
	if _, err := Parse("x", whole); err != nil {
		t.Fatal(err)
	}
	edit := func(at int, bytes ...byte) []byte {
		d := append([]byte(nil), whole...)
		copy(d[at:], bytes)
		return d
	}
	version := bytes.Index(whole, []byte{'J', 0xe9, 0x03})
	little := bytes.Index(whole, []byte("little_endian"))
	for _, h := range []struct {
		name string
		data []byte
		kind error
		text string
	}{
		{"cut off in the data", whole[:len(whole)-1], ErrBroken, "the file has 15 bytes more"},
		{"cut off in a length", whole[:len(whole)-20], ErrBroken, "is cut off"},
		{"cut off in a pickle", whole[:60], ErrBroken, "no end of a line"},
		{"bytes after the data", append(append([]byte(nil), whole...), 0), ErrBroken, "bytes after the last storage"},
		{"a long storage", edit(len(whole)-24, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), ErrBroken,
			"has 9223372036854775807 elements"},
		{"a negative storage", edit(len(whole)-24, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ErrBroken,
			"elements of 4 bytes"},
		{"a shorter storage", edit(len(whole)-24, 3), ErrBroken, "is 12 bytes long, the pickle says 16"},
		{"another version", edit(version+1, 1, 0), ErrUnsupported, "version of the file is 1"},
		{"a big-endian machine", edit(little+13, 0x89), ErrUnsupported, "big-endian"},
		{"a storage of another key", edit(bytes.LastIndex(whole, []byte("0")), '7'), ErrBroken,
			`"7" that no tensor names`},
	} {
		_, err := Parse("x", h.data)
		if !errors.Is(err, h.kind) || !strings.Contains(err.Error(), h.text) {
			t.Errorf("%s: %v, want %v with %q", h.name, err, h.kind, h.text)
		}
	}
}

// TestBombs checks that the memory for hostile pickles is bounded: memoized values are shared, and nested ones are not
// traversed.
func TestBombs(t *testing.T) {
	n := 1 << 20
	if testing.Short() {
		n = 1 << 14
	}
	nested := start()
	for range n {
		nested.Op('}').Str("")
	}
	lists := start().Op(']', bytes.Repeat([]byte{']'}, n)...)
	marks := start().Op('(', bytes.Repeat([]byte{'('}, n)...)
	doubled := start().Op(']').Op('q', 0) // every list holds the one before it twice
	for range n / 8 {
		doubled.Op(']').Op('h', 0).Op('a').Op('h', 0).Op('a').Op('q', 0)
	}
	memo := start().Op('}')
	for i := range n / 8 {
		memo.Op('r', binary.LittleEndian.AppendUint32(nil, uint32(i)*4096)...)
	}
	for name, p := range map[string]*asm{"nested": nested, "lists": lists, "marks": marks, "doubled": doubled,
		"memo": memo} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("x", torchfiletest.Zip(p.Bytes(), nil, nil))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: read", name)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 300<<20 {
			t.Errorf("%s: %d bytes for a pickle of %d", name, used, p.Len())
		}
	}
	endless := start().Op('}', bytes.Repeat([]byte("N0"), maxInstructions/2)...).Op('.')
	if _, err := Parse("x", torchfiletest.Zip(endless.Bytes(), nil, nil)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%d instructions: %v", maxInstructions+3, err)
	}
}
