package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
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
// As the format demands, a field is skipped if its number is not listed, or it
// has another wire type or an unknown enum value. Of a scalar that occurs twice
// the last value counts; a message that occurs twice is merged.

// maxPieceBytes is the limit of the sentencepiece library (0.2.2).
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

// field is one field of a message. value is the value of a number; body is the content
// of a field with a length: a part of the message, at off in the file.
type field struct {
	number protowire.Number
	wire   protowire.Type
	value  uint64
	body   []byte
	off    int64
}

const endOfGroup = "end of a group that was not begun"

// cutField reads the first field, of n bytes, of a message that is nested in depth
// others. For a malformed field, bad is the reason.
func cutField(b []byte, depth int) (f field, n int, bad string) {
	tag, n := protowire.ConsumeVarint(b)
	f.number, f.wire = protowire.Number(uint32(tag)>>3), protowire.Type(tag&7)
	switch {
	case n < 0:
		return f, n, protowire.ParseError(n).Error()
	case n > maxTagBytes || f.number == 0:
		return f, n, fmt.Sprintf("tag of %d bytes and field number %d", n, f.number)
	}
	rest, m := b[n:], 0
	switch f.wire {
	case protowire.VarintType:
		f.value, m = protowire.ConsumeVarint(rest)
	case protowire.Fixed32Type:
		var v uint32
		v, m = protowire.ConsumeFixed32(rest)
		f.value = uint64(v)
	case protowire.Fixed64Type:
		f.value, m = protowire.ConsumeFixed64(rest)
	case protowire.BytesType:
		if _, size := protowire.ConsumeVarint(rest); size > maxTagBytes {
			return f, n, fmt.Sprintf("length of %d bytes", size)
		}
		f.body, m = protowire.ConsumeBytes(rest)
	case protowire.StartGroupType:
		if depth++; depth > maxNesting {
			return f, n, fmt.Sprintf("nested deeper than %d", maxNesting)
		}
		for {
			in, size, bad := cutField(rest[m:], depth)
			m += size
			switch {
			case bad == endOfGroup && in.number == f.number:
				return f, n + m, ""
			case bad == endOfGroup:
				return f, n, fmt.Sprintf("group %d ends as group %d", f.number, in.number)
			case bad != "":
				return f, n, bad
			}
		}
	case protowire.EndGroupType:
		return f, n, endOfGroup
	default:
		return f, n, fmt.Sprintf("wire type %d", f.wire)
	}
	if m < 0 {
		return f, n, protowire.ParseError(m).Error()
	}
	return f, n + m, ""
}

// eachField calls f with the fields of a message that is nested in depth others and
// begins at off in the file. Groups are passed to f without their content.
func eachField(file string, message []byte, off int64, depth int, f func(field) error) error {
	for at := 0; at < len(message); {
		e, n, bad := cutField(message[at:], depth)
		if bad != "" {
			return &FormatError{file, off + int64(at), "not a SentencePiece model: " + bad}
		}
		at += n
		e.off = off + int64(at-len(e.body))
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// readSPM parses and checks a model. It accepts what the sentencepiece library
// loads, except that the trie inside the character map is not walked and the
// model's self-test is not run. Memory is bounded by a small multiple of len(data).
func readSPM(file string, data []byte) (*spmModel, error) {
	m := &spmModel{modelType: spmUnigram, addDummyPrefix: true, removeExtraWhitespaces: true}
	err := eachField(file, data, 0, 0, func(part field) error {
		if part.wire != protowire.BytesType {
			return nil
		}
		switch part.number {
		case 1:
			if len(m.pieces) == maxVocab {
				return badf(file, "more than %d pieces", maxVocab)
			}
			p := spmPiece{typ: Normal}
			err := eachField(file, part.body, part.off, 1, func(e field) error {
				switch t := TokenType(int32(e.value)); {
				case e.number == 1 && e.wire == protowire.BytesType:
					p.text = string(e.body)
				case e.number == 2 && e.wire == protowire.Fixed32Type:
					p.score = math.Float32frombits(uint32(e.value))
				case e.number == 3 && e.wire == protowire.VarintType && Normal <= t && t <= Byte:
					p.typ = t
				}
				return nil
			})
			m.pieces = append(m.pieces, p)
			return err
		case 2:
			return eachField(file, part.body, part.off, 1, func(e field) error {
				switch t := int32(e.value); {
				case e.wire != protowire.VarintType:
				case e.number == 3 && spmUnigram <= t && t <= spmChar:
					m.modelType = t
				case e.number == 35:
					m.byteFallback = e.value != 0
				}
				return nil
			})
		case 3:
			return eachField(file, part.body, part.off, 1, func(e field) error {
				switch {
				case e.number == 2 && e.wire == protowire.BytesType:
					m.charsMap = e.body
				case e.number == 3 && e.wire == protowire.VarintType:
					m.addDummyPrefix = e.value != 0
				case e.number == 4 && e.wire == protowire.VarintType:
					m.removeExtraWhitespaces = e.value != 0
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := m.check(file); err != nil {
		return nil, err
	}
	return m, nil
}

// bytePiece matches the text of a piece for one byte.
var bytePiece = regexp.MustCompile(`^<0x[0-9A-F]{2}>$`)

// check does the library's checks of a loaded model.
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
