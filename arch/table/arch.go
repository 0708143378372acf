package table

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// Arch describes one architecture, or one of several ways in which checkpoints
// of it are made: tables of the same Name differ in their classes.
type Arch struct {
	Name    string   // GGUF name, general.architecture
	Classes []string // Hugging Face class names ("architectures" of config.json)
	// Body is the model without its output head, as a class of its own.
	Body      Body
	Tokenizer tokenizer.Class
	Fused     Fused
	// VocabSize is the length of the vocabulary; nil for the config's vocab_size.
	VocabSize func(*config.View) (int64, error)
	// RawConfig takes config.json as it is, without the defaults that the
	// transformers library has for its model_type.
	RawConfig bool
	// BlockCount is the number of layers; nil for that of the config, with those of
	// NextN.
	BlockCount func(*config.View) (int64, error)
	// NextN is for architectures whose MTP (NextN) layers may be left
	// out or be a file of their own; nil for all others.
	NextN *NextN
	// Draft is true of draft models (speculative decoding) of another one, whose configuration and
	// tokenizer it needs, see config.Facts.
	Draft bool
	// MaskToken is the token of the mask, for drafts that may have an embedding of their own
	// for it in a file next to the weights; nil for all others.
	MaskToken func(*config.View) (n int64, ok bool, err error)
	// DSpark is the class of the drafts of blocks of tokens that checkpoints of the model
	// may have next to it; "" for none.
	DSpark string
	// Encoder is set in tables of vision and audio encoders; nil for language models.
	Encoder     *Encoder
	HeaderFirst []Row // those before general.type
	HeaderLast  []Row // those after the tokenizer's
	Metadata    []Row // in the order the file has them, below the architecture's name
	// RopePerAttention and RopeSections are true of architectures that know RoPE
	// settings per kind of attention, or for more than one axis.
	RopePerAttention, RopeSections bool
	// Unused are config keys that may have any value: no loader asks for them. Those
	// of rope settings begin with "rope_scaling.".
	Unused []string
	// MXFP4 names files by experts in MXFP4 in every output type, not only in plain ones.
	MXFP4 bool
	// FullAttention is for runtimes that see everything although the file names a
	// sliding window.
	FullAttention bool
	Expect        []Expect // config keys that change arithmetic and have one meaning here
	Rename        []Rename // the first that fits is done
	Drop          []Drop
	Tensors       []TensorRow // what becomes of each tensor of the checkpoint
	// Shapes has the dimensions of tensors whose names do not
	// mean what they usually do.
	Shapes shape.Rules
	// KeepAll lets the rows see names that look like parts for pictures or sound.
	KeepAll bool
	Extra   []ExtraTensor
	// Folder is where the model's weights are, "" for the checkpoint's directory.
	Folder string
	// Beside are files of weights next to the model's.
	Beside []Beside
	// MuteZeros is true where tokens after those of the tokenizer's model whose embedding is
	// zero are never to be generated: their ids become Facts.Suppress.
	MuteZeros bool
	// PackedFirst puts experts that are stored in MXFP4 before all other
	// tensors, layer by layer in the order of their names in the checkpoint.
	PackedFirst bool
	// LastOfNVFP4 begins the names of tensors that come after all others in models of
	// which weights are in NVFP4: the reference gives them new names there.
	LastOfNVFP4 string
	// Variant returns the table that a config of these classes asks for, nil for
	// this one.
	Variant func(*config.View) (*Arch, error)
	// Variants are the tables that Variant may return to models that name one of these classes.
	Variants []*Arch

	lookup lookup
}

// Encoder describes a vision or audio encoder with its projector (mmproj), whose output the
// language model reads. It has a file of its own: general.type is mmproj, there is no
// vocabulary. Names of the rows are those of the checkpoint, in which the language
// model's tensors are dropped by rows like all others.
type Encoder struct {
	// Parts are the configurations that the encoder is described in: what nothing asks
	// for in them is reported.
	Parts []In
	// Facts are where the facts are that rows of tensors need, see Row.Facts.
	Facts []config.Source
}

// Fused is a set of tensors that files of an architecture may hold fused. Source:
// the lists of tensors per architecture in gguf-py's constants.py.
type Fused uint8

const (
	FusedQKV    Fused = 1 << iota // query, key and value in one, attn_qkv
	FusedGateUp                   // gate and up projections of experts in one, ffn_gate_up_exps
)

// Sources lists where the facts are that the rows need besides config.json.
func (a *Arch) Sources() []config.Source {
	var list []config.Source
	for _, r := range slices.Concat(a.HeaderFirst, a.Metadata, a.HeaderLast) {
		if r.Facts != config.NoFiles && !slices.Contains(list, r.Facts) {
			list = append(list, r.Facts)
		}
	}
	if a.Encoder != nil {
		list = append(list, a.Encoder.Facts...)
	}
	return list
}

// Beside is a file of weights next to the model's, a safetensors file. Its tensors come
// after the model's, in the order of their data.
type Beside struct {
	File   string
	Prefix string // of their names, for the rows
	// Made says that the file's tensors are no weights of the checkpoint for the reference,
	// which makes others of them: they do not count where the output's type is theirs.
	Made bool
}

// Body describes checkpoints of the classes that a model has inside: the names of
// their tensors lack Prefix, and there is no output head.
type Body struct {
	Classes []string
	Prefix  string
}

// Headless reports whether a checkpoint has no output head although that of the
// model is not its token embedding.
func (a *Arch) Headless(c *config.View) bool {
	return slices.Contains(a.Body.Classes, c.Class) && c.Given("tie_word_embeddings") != true
}

// Blocks returns the number of layers.
func (a *Arch) Blocks(c *config.View) (int64, error) {
	count := a.BlockCount
	switch {
	case count != nil:
	case a.NextN != nil:
		count = a.NextN.blocks
	default:
		count = (*config.View).BlockCount
	}
	n, err := count(c)
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, want at most %d", c.FileName(), n, config.MaxBlocks)
	}
	return n, err
}

// Unread lists the config keys that nothing asked for and that might mean
// something, see Config.Unread, less those that mean nothing here.
func (a *Arch) Unread(c *config.View) []string {
	unread := c.Unread
	if a.Encoder != nil {
		unread = func() (keys []string) {
			for _, part := range a.Encoder.Parts {
				keys = append(keys, c.UnreadOf(part(c))...)
			}
			return keys
		}
	}
	return slices.DeleteFunc(unread(), func(key string) bool {
		return slices.ContainsFunc(a.Unused, func(u string) bool { return key == u || strings.HasPrefix(key, u+".") })
	})
}

// LostWindow returns how many positions of its context a model sees whose file, with
// the metadata m, makes a runtime see all; ok is false when there is no difference.
// context is 0 where config.json has no length. Tables that have the key among their
// Unused are of models that see everything.
func (a *Arch) LostWindow(c *config.View, m gguf.Metadata) (window, context int64, ok bool) {
	if a.Encoder != nil || slices.Contains(a.Unused, "sliding_window") {
		return 0, 0, false
	}
	if v, there := m.Get(gguf.ArchKey(a.Name, "attention.sliding_window")); there && !a.FullAttention {
		if n, isInt := v.Int(); isInt && n > 0 {
			return 0, 0, false
		}
	}
	return c.Window()
}

// KVs returns the metadata below the architecture's name, including
// general.file_type, in the order of the reference; early holds what comes before
// general.type.
func (a *Arch) KVs(c *config.View, fileType uint32) (early, m gguf.Metadata, err error) {
	for _, e := range a.Expect {
		if err := e.check(a, c); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range []struct {
		key   string
		known bool
	}{
		{"full_attention", a.RopePerAttention}, {"sliding_attention", a.RopePerAttention},
		{"mrope_section", a.RopeSections},
	} {
		if c.RopeRoot().Members()[r.key] != nil && !r.known {
			return nil, nil, fault.Errorf(fault.Unsupported, "%s: rope setting %q has no meaning in architecture %s",
				c.FileName(), r.key, a.Name)
		}
	}
	if early, err = a.kvs(c, a.HeaderFirst, fileType); err != nil {
		return nil, nil, err
	}
	m, err = a.kvs(c, a.Metadata, fileType)
	return early, m, err
}

// Constants returns what of HeaderFirst is the same for all models of the architecture. The
// reference writes it into adapters, too; the rest comes with tensors that they lack.
func (a *Arch) Constants(c *config.View) (gguf.Metadata, error) {
	rows := slices.DeleteFunc(slices.Clone(a.HeaderFirst), func(r Row) bool { return r.Derive != nil || r.From != nil })
	return a.kvs(c, rows, 0)
}

func (a *Arch) kvs(c *config.View, rows []Row, fileType uint32) (m gguf.Metadata, err error) {
	for _, r := range rows {
		if r.Key == gguf.KeyFileType {
			if r.Derive != nil {
				_, ok, err := r.Derive(c)
				if err != nil {
					return nil, err
				}
				if !ok {
					continue
				}
			}
			m.Set(r.Key, gguf.Uint32(fileType))
			continue
		}
		if r.Deviates && c.Options.Reference {
			continue
		}
		if r.Many != nil {
			pairs, err := r.Many(c)
			if err != nil {
				return nil, err
			}
			for _, kv := range pairs {
				m.Set(gguf.ArchKey(a.Name, kv.Key), kv.Value)
			}
			continue
		}
		v, ok, err := r.Value(c)
		if r.Key == KeyBlockCount && a.NextN != nil && err == nil {
			n, e := a.NextN.blocks(c)
			v, ok, err = Uint32Of(n, true, e)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		key := r.Key
		if !r.Whole && !strings.HasPrefix(key, "general.") && !strings.HasPrefix(key, "tokenizer.") &&
			!strings.HasPrefix(key, "diffusion.") {
			key = gguf.ArchKey(a.Name, key)
		}
		m.Set(key, v)
	}
	return m, nil
}

// HeaderLastKVs returns the metadata after the tokenizer's.
func (a *Arch) HeaderLastKVs(c *config.View) (gguf.Metadata, error) { return a.kvs(c, a.HeaderLast, 0) }

// CheckShapes compares the tensors that a checkpoint would become with the metadata
// m of the file. An error is of kind fault.Broken.
func (a *Arch) CheckShapes(c *config.View, m gguf.Metadata, tensors []shape.Tensor) error {
	err := a.Shapes.Check(a.Name, m, tensors, func(key string) string {
		for _, r := range a.Metadata {
			if r.Key != key {
				continue
			}
			o := r.of(c)
			for i, from := range r.From {
				if o.Present(from) {
					return o.Names(r.From)[i]
				}
			}
		}
		return ""
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", config.ConfigFile, err)
	}
	return err
}

// Expect names a config key whose value decides the arithmetic of the model,
// where the GGUF architecture knows one kind of arithmetic only.
type Expect struct {
	Key string
	In  In // whose key it is; nil for the model's
	// Values are those that mean what the architecture does, as text; numbers are
	// compared as numbers. An absent key means it, too. None: the key must be absent.
	Values []string
	// Rope says that the key is one of the rope settings.
	Rope bool
	// With is a key without which, or with "false" for it, the value changes nothing;
	// "" for none.
	With string
}

func (e Expect) check(a *Arch, c *config.View) error {
	o := c.Object
	if e.In != nil {
		o = e.In(c)
	}
	v, key := c.GivenIn(o, e.Key), o.Names([]string{e.Key})[0]
	if e.Rope {
		v = c.Rope().Value(e.Key)
	}
	if e.With != "" && c.Given(e.With) != true {
		return nil
	}
	s := text(v)
	if v == nil || slices.ContainsFunc(e.Values, func(want string) bool { return s == text(json.Number(want)) }) {
		return nil
	}
	if len(e.Values) == 0 {
		return fault.Errorf(fault.Unsupported, "%s: key %q has no meaning in architecture %s, and it changes the model",
			o.FileName(), key, a.Name)
	}
	return fault.Errorf(fault.Unsupported, "%s: key %q is %q, but models of architecture %s compute with %s only",
		o.FileName(), key, s, a.Name, strings.Join(e.Values, " or "))
}

// text returns a value of config.json as text, numbers in one spelling: 7.00 is 7.
func text(v any) string {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i] = text(v[i])
		}
		return fmt.Sprint(list)
	}
	return fmt.Sprint(v)
}
