package edit

import (
	"regexp"
	"slices"
	"strconv"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// Keys of a vocabulary that have a value for each token, or their number.
const (
	keyScores     = "tokenizer.ggml.scores"
	keyTokenTypes = "tokenizer.ggml.token_type"
	keyVocabSize  = ".vocab_size" // after the architecture
)

// Padding tokens are those of the reference's converter: their score is that of a token that no merge produces, their
// type is "unused".
const (
	padScore  = -10000
	padUnused = 5
)

// maxVocab is the largest number of tokens in a padded vocabulary.
const maxVocab = 1 << 24

// perToken are tensors that have a row for each token.
var perToken = regexp.MustCompile(
	`^(token_embd\.weight|output\.(weight|bias)|per_layer_token_embd\.weight|blk\.\d+\.nextn\.(embed_tokens|shared_head_head)\.weight)$`)

// Pad describes how a vocabulary is padded.
type Pad struct {
	// The new number of tokens is Size or the present number, whichever is more, rounded up to a multiple of Multiple;
	// 0 is 1 for Multiple.
	Size, Multiple int64
	// Like is the token whose rows are copied for new tokens; negative for rows of zeros.
	Like int64
}

// PadVocab returns the file at path with tokens [PADn] of type unused at the end of the vocabulary of a model, and rows
// for them in token embeddings and output. Rows are copied as they are stored, whatever their type; bytes of 0 are
// numbers of 0 in every type. A model in shards becomes one file. A vocabulary that has the size already, or that does
// not fit the tensors, is an error of kind fault.Refused.
func PadVocab(s *gguf.Set, path string, p Pad) (*writer.File, error) {
	if err := sameOrder(s); err != nil {
		return nil, err
	}
	file := s.Files[0].Path
	m := s.Metadata().Carried()
	tokens, ok := m.Get(keyTokens)
	if !ok || tokens.Type() != gguf.ArrayType || tokens.ElemType() != gguf.StringType {
		return nil, fault.Errorf(fault.Refused, "%s: no list of tokens under the key %q", file, keyTokens)
	}
	have := int64(tokens.Len())
	want, multiple := p.Size, max(1, p.Multiple)
	if want == 0 {
		want = have
	}
	if want > maxVocab || multiple > maxVocab {
		return nil, fault.Errorf(fault.Usage, "a vocabulary of %d tokens, want at most %d",
			max(want, multiple), maxVocab)
	}
	want = (want + multiple - 1) / multiple * multiple
	switch {
	case want > maxVocab:
		return nil, fault.Errorf(fault.Usage, "a vocabulary of %d tokens, want at most %d", want, maxVocab)
	case want < have:
		return nil, fault.Errorf(fault.Usage, "%s: %d tokens: a vocabulary cannot be padded to %d", file, have, want)
	case want == have:
		return nil, fault.Errorf(fault.Refused, "%s: %d tokens already: nothing to pad", file, have)
	case p.Like >= have:
		return nil, fault.Errorf(fault.Usage, "token %d: want one below %d", p.Like, have)
	}
	if err := padTokens(&m, file, tokens, want); err != nil {
		return nil, err
	}
	key := m.Architecture() + keyVocabSize
	if _, ok := m.Get(key); ok {
		m.Set(key, gguf.Uint32(uint32(want)))
	}
	for _, key := range []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors} {
		m.Delete(key)
	}
	out := &writer.File{Path: path, Metadata: m, Alignment: s.Files[0].Alignment, BigEndian: s.Files[0].BigEndian}
	out.Tensors, out.Stated = tensors(s)
	found := false
	i := 0
	for shard, t := range s.Tensors() {
		if perToken.MatchString(t.Name) {
			last := len(t.NE) - 1
			if last < 0 || t.NE[last] != have {
				return nil, fault.Errorf(fault.Refused, "%s: tensor %q: %s, but the vocabulary has %d tokens",
					s.Files[shard].Path, t.Name, gguf.Shape(t.NE), have)
			}
			if !t.Type.Known() || t.Bytes()%have != 0 || last == 0 && t.Type.BlockLen() > 1 {
				return nil, fault.Errorf(fault.Unsupported,
					"%s: tensor %q: to %v of %s no rows can be added", s.Files[shard].Path, t.Name, t.Type,
					gguf.Shape(t.NE))
			}
			src, err := padded(s.Files[shard], t, have, want, p.Like)
			if err != nil {
				return nil, err
			}
			out.Tensors[i].Source = src
			stated := *t
			stated.NE = append(slices.Clone(t.NE[:last]), want)
			out.Stated[t.Name] = stated
			found = true
		}
		i++
	}
	if !found {
		return nil, fault.Errorf(fault.Refused, "%s: no tensor has a row for each token", file)
	}
	return out, nil
}

// padTokens adds tokens to the lists of a vocabulary.
func padTokens(m *gguf.Metadata, file string, tokens gguf.Value, want int64) error {
	have := tokens.Len()
	texts, seen := make([]string, 0, have), make(map[string]bool, have)
	for v := range tokens.Elems() {
		s, _ := v.Str()
		texts = append(texts, s)
		seen[s] = true
	}
	for id := int64(have); id < want; id++ {
		name := "[PAD" + strconv.FormatInt(id, 10) + "]"
		if seen[name] {
			return fault.Errorf(fault.Refused, "%s: there is a token %q already", file, name)
		}
		texts = append(texts, name)
	}
	m.Set(keyTokens, gguf.Strings(texts))
	length := func(key string, v gguf.Value) error {
		if v.Type() != gguf.ArrayType || v.Len() != have {
			return fault.Errorf(fault.Refused, "%s: key %q is %s, want a number for each of %d tokens", file, key,
				v.Short(), have)
		}
		return nil
	}
	if v, ok := m.Get(keyScores); ok {
		if err := length(keyScores, v); err != nil {
			return err
		}
		scores := make([]float32, 0, want)
		for e := range v.Elems() {
			f, _ := e.Float()
			scores = append(scores, float32(f))
		}
		for int64(len(scores)) < want {
			scores = append(scores, padScore)
		}
		m.Set(keyScores, gguf.Float32s(scores))
	}
	if v, ok := m.Get(keyTokenTypes); ok {
		if err := length(keyTokenTypes, v); err != nil {
			return err
		}
		types := make([]int32, 0, want)
		for e := range v.Elems() {
			n, _ := e.Int()
			types = append(types, int32(n))
		}
		for int64(len(types)) < want {
			types = append(types, padUnused)
		}
		m.Set(keyTokenTypes, gguf.Int32s(types))
	}
	return nil
}

// padded returns the stored rows of a tensor with more of them at the end.
func padded(f *gguf.File, t *gguf.Tensor, have, want, like int64) (rows.Source, error) {
	raw := *t
	raw.Type, raw.NE = gguf.TypeI8, []int64{t.Bytes() / have, have}
	p := &paddedRows{Source: rows.GGUF(f, &raw), have: have, ne: []int64{raw.NE[0], want}, row: make([]byte, raw.NE[0])}
	if like >= 0 {
		var buf []byte
		row, err := p.Source.Raw(&buf, like, like+1)
		if err != nil {
			return nil, err
		}
		copy(p.row, row)
	}
	return p, nil
}

type paddedRows struct {
	rows.Source // the stored rows, as I8
	have        int64
	ne          []int64
	row         []byte
}

func (p *paddedRows) NE() []int64 { return p.ne }

func (p *paddedRows) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	if b <= p.have {
		return p.Source.Raw(buf, a, b)
	}
	var out []byte
	if a < p.have {
		var own []byte
		raw, err := p.Source.Raw(&own, a, p.have)
		if err != nil {
			return nil, err
		}
		out = raw
	}
	*buf = append((*buf)[:0], out...)
	for range b - max(a, p.have) {
		*buf = append(*buf, p.row...)
	}
	return *buf, nil
}
