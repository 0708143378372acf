package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggforge/internal/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// A SentencePiece model is one protocol buffer message (sentencepiece_model.proto
// of google/sentencepiece). The fields used here:
//
//	ModelProto
//	├─ 1 pieces, repeated      1 piece string · 2 score float · 3 type enum
//	├─ 2 trainer_spec          3 model_type enum · 35 byte_fallback bool
//	└─ 3 normalizer_spec       2 precompiled_charsmap bytes · 3 add_dummy_prefix bool
//	                           4 remove_extra_whitespaces bool
//
// Each field is a tag (number<<3 | wire type, a varint) and its payload:
//
//	wire type 0 varint · 1 eight bytes · 2 length and bytes · 3, 4 group · 5 four bytes
//
// Numbers that are not listed, a listed number with another wire type, and enum
// values outside the enum are skipped, as the format demands; a scalar that
// comes twice takes its last value, and a message that comes twice is merged.

// The model types that the library knows (TrainerSpec.ModelType).
const (
	spmUnigram  = 1
	spmBytePair = 2
	spmChar     = 4
)

// maxPieceBytes is what the sentencepiece library (0.2.2) accepts.
const maxPieceBytes = 7999

type spmPiece struct {
	text  string
	score float32
	typ   TokenType
}

type spmModel struct {
	pieces       []spmPiece
	modelType    int32
	byteFallback bool
	charsMap     []byte

	// of the normalizer; both true unless the file says otherwise
	addDummyPrefix         bool
	removeExtraWhitespaces bool
}

// readSPM parses and checks a model. It accepts what the sentencepiece library
// loads, except that the trie inside the character map is not walked and the
// model's self-test is not run. Memory is bounded by a small multiple of len(data).
func readSPM(file string, data []byte) (*spmModel, error) {
	m := &spmModel{modelType: spmUnigram, addDummyPrefix: true, removeExtraWhitespaces: true}
	r := &protoReader{data: data}
	for r.next() {
		switch r.key() {
		case protoBytes | 1:
			p := spmPiece{typ: Normal}
			s := r.message()
			for s.next() {
				switch s.key() {
				case protoBytes | 1:
					p.text = string(s.body)
				case protoFixed32 | 2:
					p.score = math.Float32frombits(uint32(s.value))
				case protoVarint | 3:
					if t := TokenType(int32(s.value)); Normal <= t && t <= Byte {
						p.typ = t
					}
				}
			}
			r.adopt(s)
			m.pieces = append(m.pieces, p)
		case protoBytes | 2:
			s := r.message()
			for s.next() {
				switch s.key() {
				case protoVarint | 3:
					if t := int32(s.value); spmUnigram <= t && t <= spmChar {
						m.modelType = t
					}
				case protoVarint | 35:
					m.byteFallback = s.value != 0
				}
			}
			r.adopt(s)
		case protoBytes | 3:
			s := r.message()
			for s.next() {
				switch s.key() {
				case protoBytes | 2:
					m.charsMap = s.body
				case protoVarint | 3:
					m.addDummyPrefix = s.value != 0
				case protoVarint | 4:
					m.removeExtraWhitespaces = s.value != 0
				}
			}
			r.adopt(s)
		}
	}
	if r.fault != "" {
		return nil, &FormatError{file, int64(r.base + r.pos), "not a SentencePiece model: " + r.fault}
	}
	if err := m.check(file); err != nil {
		return nil, err
	}
	return m, nil
}

// bytePiece matches the text of a piece that stands for one byte.
var bytePiece = regexp.MustCompile(`^<0x[0-9A-F]{2}>$`)

// check makes the library's tests of a loaded model.
func (m *spmModel) check(file string) error {
	seen := make(map[string]bool, len(m.pieces))
	nUnknown, nByte, nNormal := 0, 0, 0
	for i, p := range m.pieces {
		fault := ""
		switch {
		case p.text == "":
			fault = "has no text"
		case len(p.text) > maxPieceBytes:
			fault = fmt.Sprintf("has %d bytes, want at most %d", len(p.text), maxPieceBytes)
		case strings.Contains(p.text, "\x00"):
			fault = "holds a null character"
		case seen[p.text]:
			fault = fmt.Sprintf("repeats the text %q", p.text)
		case p.typ == Unknown && nUnknown > 0:
			fault = "is a second piece of type unknown"
		case p.typ == Byte && !m.byteFallback:
			fault = "is of type byte, but the model has no byte_fallback"
		case p.typ == Byte && !bytePiece.MatchString(p.text):
			fault = fmt.Sprintf("is of type byte, but has the text %q", p.text)
		case m.modelType == spmUnigram && (math.IsNaN(float64(p.score)) || math.IsInf(float64(p.score), 0)):
			fault = fmt.Sprintf("has the score %v", p.score)
		}
		if fault != "" {
			return badf(file, "piece %d %s", i, fault)
		}
		seen[p.text] = true
		switch p.typ {
		case Unknown:
			nUnknown++
		case Byte:
			nByte++
		case Normal, UserDefined, Unused:
			nNormal++
		}
	}
	switch {
	case nUnknown == 0:
		return badf(file, "no piece of type unknown")
	case m.byteFallback && nByte != 256:
		return badf(file, "%d byte pieces, want 256 in a model with byte_fallback", nByte)
	case m.modelType == spmUnigram && nNormal == 0:
		return badf(file, "a unigram model without pieces")
	}
	return checkCharsMap(file, m.charsMap)
}

// checkCharsMap checks the frame of a character map: the trie's size in bytes
// as a 32-bit integer, the trie in units of 1024 bytes, and the texts it points to.
func checkCharsMap(file string, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if len(b) <= 4 {
		return badf(file, "precompiled_charsmap has %d bytes, want more than 4", len(b))
	}
	if n := int64(binary.LittleEndian.Uint32(b)); n >= int64(len(b)-4) || n%1024 != 0 {
		return badf(file, "precompiled_charsmap: trie of %d bytes, want a multiple of 1024 below %d", n, len(b)-4)
	}
	return nil
}

// readModel reads a SentencePiece model of the directory.
func (f *files) readModel(name string) (*spmModel, error) {
	if !isFile(f.dir, name) {
		return nil, badf(name, "no such file; the architecture has no other tokenizer")
	}
	data, err := f.dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return readSPM(name, data)
}

// spmRows builds one row per token id in v from the model and the two lists of
// added tokens.
func (f *files) spmRows(v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.rows(v, spmFile, opt); err != nil {
		return err
	}
	if n := len(v.Tokens); len(m.pieces) > n {
		v.warnf("%s: tokens from %d on ignored: the vocabulary has %d", spmFile, n, n)
	}
	if err := f.addedTokens(v); err != nil {
		return err
	}
	return f.addedTokensDecoder(v)
}

// rows builds opt.VocabSize rows of v from the pieces that there are.
func (m *spmModel) rows(v *Vocab, file string, opt Options) error {
	n := opt.VocabSize
	switch {
	case n == 0:
		n = len(m.pieces)
	case n < 0 || n > maxVocab:
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens = make([]string, n)
	v.Scores = make([]float32, n)
	v.Types = make([]TokenType, n)
	for id := range v.Tokens {
		if id >= len(m.pieces) {
			v.set(id, "[PAD"+strconv.Itoa(id)+"]", -10000, Unused)
			continue
		}
		p := m.pieces[id]
		if !utf8.ValidString(p.text) {
			return badf(file, "piece %d is not UTF-8 text: %q", id, p.text)
		}
		typ := p.typ
		if typ == UserDefined {
			typ = Normal // it is user-defined in the output only when a list of added tokens has it too
		}
		v.set(id, p.text, p.score, typ)
	}
	return nil
}

// addedTokens lays added_tokens.json (text → id) over the rows.
func (f *files) addedTokens(v *Vocab) error {
	added, err := readObjectIfFile(f.dir, addedTokensFile)
	if added == nil {
		return err
	}
	if err := atMost(addedTokensFile, "added tokens", len(added.Names), hf.MaxAdded); err != nil {
		return err
	}
	for _, text := range added.Names {
		id, ok := pyjson.Integer(added.Values[text])
		if !ok {
			return badf(addedTokensFile, "token %q: want an integer id, got %s", text, pyjson.Describe(added.Values[text]))
		}
		row, err := v.row(addedTokensFile, id.String(), text)
		if err != nil {
			return err
		}
		if row >= 0 {
			v.override(addedTokensFile, row, text, UserDefined)
		}
	}
	return nil
}

// addedTokensDecoder lays the added_tokens_decoder member of
// tokenizer_config.json (id → properties) over the rows.
func (f *files) addedTokensDecoder(v *Vocab) error {
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		row, err := v.row(t.file, t.id, t.text)
		if err != nil {
			return err
		}
		if row < 0 {
			continue
		}
		if t.special || looksSpecial(t.text) {
			v.override(t.file, row, t.text, Control)
		} else {
			v.override(t.file, row, t.text, UserDefined)
			v.Tokens[row] = strings.ReplaceAll(t.text, "▁", " ")
		}
	}
	return nil
}

// addedToken is one entry of a list of added tokens.
type addedToken struct {
	file    string // where it stands
	id      string // decimal
	text    string
	special bool
}

// decoderTokens returns the added_tokens_decoder member of tokenizer_config.json.
func (f *files) decoderTokens() ([]addedToken, error) {
	const member = "added_tokens_decoder"
	value, ok := f.config.Lookup(member)
	if !ok {
		return nil, nil
	}
	decoder, ok := value.(*pyjson.Object)
	if !ok {
		return nil, badf(configFile, "%s: want an object, got %s", member, pyjson.Describe(value))
	}
	if err := atMost(configFile, "added tokens", len(decoder.Names), hf.MaxAdded); err != nil {
		return nil, err
	}
	var tokens []addedToken
	for _, key := range decoder.Names {
		id, ok := pythonInt(key)
		if !ok {
			return nil, badf(configFile, "%s: want an integer id, got %q", member, key)
		}
		props, ok := decoder.Values[key].(*pyjson.Object)
		if !ok {
			return nil, badf(configFile, "%s: token %s: want an object, got %s", member, key, pyjson.Describe(decoder.Values[key]))
		}
		text, ok := props.Get("content").(string)
		if !ok {
			return nil, badf(configFile, "%s: token %s: want a string as content, got %s", member, key, pyjson.Describe(props.Get("content")))
		}
		tokens = append(tokens, addedToken{configFile, id, text, pyjson.Truthy(props.Get("special"))})
	}
	return tokens, nil
}

// jsonTokens returns the added_tokens member of tokenizer.json.
func (f *files) jsonTokens() ([]addedToken, error) {
	const member = "added_tokens"
	value, ok := f.json.Lookup(member)
	if !ok {
		return nil, nil
	}
	list, ok := value.([]any)
	if o, isObject := value.(*pyjson.Object); !ok && !(isObject && o.Empty()) {
		return nil, badf(jsonFile, "%s: want a list, got %s", member, pyjson.Describe(value))
	}
	if err := atMost(jsonFile, "added tokens", len(list), hf.MaxAdded); err != nil {
		return nil, err
	}
	var tokens []addedToken
	for i, e := range list {
		props, ok := e.(*pyjson.Object)
		if !ok {
			return nil, badf(jsonFile, "%s[%d]: want an object, got %s", member, i, pyjson.Describe(e))
		}
		id, ok := pyjson.Integer(props.Get("id"))
		if !ok {
			return nil, badf(jsonFile, "%s[%d]: want an integer id, got %s", member, i, pyjson.Describe(props.Get("id")))
		}
		text, ok := props.Get("content").(string)
		if !ok {
			return nil, badf(jsonFile, "%s[%d]: want a string as content, got %s", member, i, pyjson.Describe(props.Get("content")))
		}
		tokens = append(tokens, addedToken{jsonFile, id.String(), text, pyjson.Truthy(props.Get("special"))})
	}
	return tokens, nil
}

// row returns the row of an id in decimal, or -1 with a warning when the
// vocabulary ends before it. It also checks the text that is to stand there.
func (v *Vocab) row(file, id, text string) (int, error) {
	if strings.HasPrefix(id, "-") {
		return 0, badf(file, "token %q: negative id %s", text, id)
	}
	row, err := strconv.Atoi(id)
	if err != nil || row >= len(v.Tokens) {
		v.warnf("%s: token %q ignored: id %s, but the vocabulary has %d", file, text, id, len(v.Tokens))
		return -1, nil
	}
	if !utf8.ValidString(text) {
		return 0, badf(file, "token %s: unpaired surrogate in %q", id, text)
	}
	return row, nil
}

// override sets the row of an added token.
func (v *Vocab) override(file string, row int, text string, typ TokenType) {
	if v.Types[row] != Unused && v.Tokens[row] != text {
		v.warnf("%s: token %d replaced: %q by %q", file, row, v.Tokens[row], text)
	}
	v.set(row, text, -1000, typ)
}

func (v *Vocab) set(row int, text string, score float32, typ TokenType) {
	v.Tokens[row], v.Scores[row], v.Types[row] = text, score, typ
}

// looksSpecial reports whether the reference takes a token for a control token
// although its file does not call it special: for some families the files are
// known to be wrong (does_token_look_special in conversion/base.py).
func looksSpecial(text string) bool {
	if slices.Contains([]string{"<pad>", "<mask>", "<2mass>", "[@BOS@]"}, text) {
		return true
	}
	for _, frame := range [][2]string{{"<|", "|>"}, {"<｜", "｜>"}, {"<unused", ">"}} {
		if strings.HasPrefix(text, frame[0]) && strings.HasSuffix(text, frame[1]) {
			return true
		}
	}
	return false
}

var pythonIntForm = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)

// pythonInt returns the number that Python's int() reads from s, as plain
// decimal digits with "-" before a negative one. Digits outside ASCII are refused.
func pythonInt(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) > 4300 || !pythonIntForm.MatchString(s) {
		return "", false
	}
	digits := strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(s, "+-"), "_", ""), "0")
	switch {
	case digits == "":
		return "0", true
	case s[0] == '-':
		return "-" + digits, true
	}
	return digits, true
}

// The wire types that carry a value, placed above the 29 bits of a field
// number, so that number and type compare as one.
const (
	protoVarint  = 0 << 29
	protoFixed64 = 1 << 29
	protoBytes   = 2 << 29
	protoFixed32 = 5 << 29
)

// maxNesting is how deep messages and groups may nest, as in Google's readers.
const maxNesting = 100

// protoReader walks the fields of one message. After next has returned true,
// number, wire and value or body tell the field; groups are skipped. After it
// has returned false, fault is empty at the end of the message and else says
// what is wrong at base+pos.
type protoReader struct {
	data  []byte // the message
	base  int    // its offset in the file
	pos   int    // next byte, in data
	depth int
	fault string

	number uint32
	wire   uint32
	value  uint64 // of a number
	body   []byte // of wire type 2; aliases data
}

// key is the field's number and wire type in one, for a switch.
func (r *protoReader) key() uint32 { return r.wire<<29 | r.number }

// message returns a reader of the current field's body.
func (r *protoReader) message() *protoReader {
	return &protoReader{data: r.body, base: r.base + r.pos - len(r.body), depth: r.depth + 1}
}

// adopt takes over the fault of a message inside r.
func (r *protoReader) adopt(s *protoReader) {
	if s.fault != "" {
		r.pos, r.fault = s.base+s.pos-r.base, s.fault
	}
}

func (r *protoReader) next() bool {
	for r.fault == "" && r.pos < len(r.data) {
		r.field()
		switch {
		case r.fault != "":
		case r.wire == 3:
			r.skipGroup(r.number, r.depth+1)
		case r.wire == 4:
			r.fault = "end of a group that was not begun"
		default:
			return true
		}
	}
	return false
}

// skipGroup moves behind the end of the group that was just begun.
func (r *protoReader) skipGroup(number uint32, depth int) {
	if depth > maxNesting {
		r.fault = fmt.Sprintf("groups nested deeper than %d", maxNesting)
	}
	for r.fault == "" {
		if r.pos == len(r.data) {
			r.fault = "group without an end"
			return
		}
		r.field()
		switch {
		case r.fault != "":
		case r.wire == 3:
			r.skipGroup(r.number, depth+1)
		case r.wire == 4:
			if r.number != number {
				r.fault = "end of another group"
			}
			return
		}
	}
}

// field reads one tag and its payload.
func (r *protoReader) field() {
	tag := uint32(r.varint(5))
	r.number, r.wire = tag>>3, tag&7
	if r.fault == "" && r.number == 0 {
		r.fault = "field number 0"
	}
	if r.fault != "" {
		return
	}
	switch r.wire << 29 {
	case protoVarint:
		r.value = r.varint(10)
	case protoFixed64:
		if b := r.cut(8); b != nil {
			r.value = binary.LittleEndian.Uint64(b)
		}
	case protoFixed32:
		if b := r.cut(4); b != nil {
			r.value = uint64(binary.LittleEndian.Uint32(b))
		}
	case protoBytes:
		n := r.varint(5)
		if r.fault == "" {
			r.body = r.cut(n)
		}
	default:
		if r.wire > 4 {
			r.fault = fmt.Sprintf("wire type %d", r.wire)
		}
	}
}

// cut returns the next n bytes, never nil unless they are not there.
func (r *protoReader) cut(n uint64) []byte {
	if n > uint64(len(r.data)-r.pos) {
		r.fault = fmt.Sprintf("want %d bytes, %d are left", n, len(r.data)-r.pos)
		return nil
	}
	r.pos += int(n)
	return r.data[r.pos-int(n) : r.pos : r.pos]
}

// varint reads a variable-length integer of at most max bytes; bits beyond 64 are dropped.
func (r *protoReader) varint(max int) uint64 {
	var v uint64
	for i := range max {
		if r.pos == len(r.data) {
			r.fault = "integer cut off"
			return 0
		}
		c := r.data[r.pos]
		r.pos++
		v |= uint64(c&0x7F) << (7 * i)
		if c < 0x80 {
			return v
		}
	}
	r.fault = fmt.Sprintf("integer longer than %d bytes", max)
	return 0
}
