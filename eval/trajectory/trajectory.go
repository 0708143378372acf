// Package trajectory measures how long models follow the greedy continuations of their base: of each prompt the base's
// next tokens, each the most probable one, and how many of them another model would have chosen before its first other
// choice. Until then its context is the base's, so that one run over prompts and continuations tells.
package trajectory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"ggforge/eval"
	"ggforge/eval/likelihood"
	"ggforge/fault"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/vocab"
)

// Longest is the largest number of tokens of a continuation.
const Longest = 4096

// Paths are prompts with the greedy continuations of a base.
type Paths struct {
	Base       string // the model's name
	Vocabulary string // of the base, see Vocabulary
	N          int    // tokens of each path
	Prompts    [][]int32
	Paths      [][]int32
}

// ReadPrompts returns the prompts of a stream: lines of JSON, {"prompt": C}, where C is a text or a list of token ids.
// name is for messages, which name the line.
func ReadPrompts(name string, r io.Reader) (list []likelihood.Input, err error) {
	err = likelihood.Objects(name, r, func(_ int, o *pyjson.Object) error {
		if err := members(o, "prompt"); err != nil {
			return err
		}
		in, err := likelihood.InputOf(o.Get("prompt"))
		if err != nil {
			return fmt.Errorf("%q: %w", "prompt", err)
		}
		list = append(list, in)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fault.Errorf(fault.Refused, "%s: no prompts", name)
	}
	return list, err
}

// members returns an error if an object has not exactly the members.
func members(o *pyjson.Object, names ...string) error {
	for _, name := range names {
		if _, ok := o.Lookup(name); !ok {
			return fault.Errorf(fault.Broken, "members %q, want %q", o.Names, names)
		}
	}
	if len(o.Names) != len(names) {
		return fault.Errorf(fault.Broken, "members %q, want %q", o.Names, names)
	}
	return nil
}

// Tokens returns prompts as tokens. Texts begin with BOS if the vocabulary asks for it, lists of ids are as they are.
func Tokens(v *vocab.Vocab, prompts []likelihood.Input, parseSpecial bool) ([][]int32, error) {
	list := make([][]int32, len(prompts))
	for i := range prompts {
		ids, err := prompts[i].Tokens, error(nil)
		if !prompts[i].IsTokens {
			ids, err = v.Encode(prompts[i].Text, vocab.Options{AddSpecial: true, ParseSpecial: parseSpecial})
			if err != nil {
				return nil, fmt.Errorf("prompt %d: %w", i+1, err)
			}
		}
		if err := inside(ids, v.Len()); err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i+1, err)
		}
		list[i] = ids
	}
	return list, nil
}

// inside returns an error if there are no tokens, or one is not of a vocabulary of n.
func inside(ids []int32, n int) error {
	if len(ids) == 0 {
		return fault.Errorf(fault.Refused, "no tokens")
	}
	for _, id := range ids {
		if id < 0 || int(id) >= n {
			return fault.Errorf(fault.Refused, "token %d, of a vocabulary of %d", id, n)
		}
	}
	return nil
}

// Vocabulary identifies a vocabulary: the SHA-256 of its tokens, in hexadecimal.
func Vocabulary(v *vocab.Vocab) string {
	h := sha256.New()
	for id := range int32(v.Len()) {
		fmt.Fprintf(h, "%q\n", v.Token(id))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// head and line are the lines of a file.
type head struct {
	Base       string `json:"base"`
	Vocabulary string `json:"vocabulary"`
	N          int    `json:"tokens"`
}

type line struct {
	Prompt []int32 `json:"prompt"`
	Path   []int32 `json:"path"`
}

// Bytes returns the paths as a file: a line with base, vocabulary and the number of tokens of a path, then a line with
// the tokens of the prompt and of the path for each.
func (p *Paths) Bytes() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(head{p.Base, p.Vocabulary, p.N})
	for i := range p.Prompts {
		if err != nil {
			break
		}
		err = e.Encode(line{p.Prompts[i], p.Paths[i]})
	}
	return b.Bytes(), err
}

// Read returns the paths of a file. name is for messages, which name the line.
func Read(name string, r io.Reader) (*Paths, error) {
	var p *Paths
	err := likelihood.Objects(name, r, func(_ int, o *pyjson.Object) error {
		if p == nil {
			if err := members(o, "base", "vocabulary", "tokens"); err != nil {
				return err
			}
			p = new(Paths)
			n, ok := pyjson.Integer(o.Get("tokens"))
			if !ok || !n.IsInt64() || n.Int64() < 1 || n.Int64() > Longest {
				return fault.Errorf(fault.Broken, "\"tokens\": %s, want 1 to %d", pyjson.Describe(o.Get("tokens")), Longest)
			}
			p.N = int(n.Int64())
			p.Base, _ = o.Get("base").(string)
			p.Vocabulary, _ = o.Get("vocabulary").(string)
			return nil
		}
		if err := members(o, "prompt", "path"); err != nil {
			return err
		}
		for _, of := range []struct {
			name string
			to   *[][]int32
		}{{"prompt", &p.Prompts}, {"path", &p.Paths}} {
			in, err := likelihood.InputOf(o.Get(of.name))
			if err == nil && (!in.IsTokens || len(in.Tokens) == 0) {
				err = fault.Errorf(fault.Broken, "want a list of token ids")
			}
			if err != nil {
				return fmt.Errorf("%q: %w", of.name, err)
			}
			*of.to = append(*of.to, in.Tokens)
		}
		if n := len(p.Paths[len(p.Paths)-1]); n != p.N {
			return fault.Errorf(fault.Broken, "a path of %d tokens, want %d", n, p.N)
		}
		return nil
	})
	if err == nil && (p == nil || len(p.Prompts) == 0) {
		err = fault.Errorf(fault.Broken, "%s: no paths: has it been written by this program?", name)
	}
	return p, err
}

// Check returns an error if the vocabulary of the paths is not that of a model. name and model are for messages.
func (p *Paths) Check(name string, v *vocab.Vocab, model string) error {
	if own := Vocabulary(v); own != p.Vocabulary {
		return fault.Errorf(fault.Refused, "%s: its vocabulary is that of %s, not that of %s", name, p.Base, model)
	}
	for i := range p.Prompts {
		for _, ids := range [][]int32{p.Prompts[i], p.Paths[i]} {
			if err := inside(ids, v.Len()); err != nil {
				return fmt.Errorf("%s: path %d: %w", name, i+1, err)
			}
		}
	}
	return nil
}

// Figures are about the numbers of tokens that a model follows.
type Figures struct {
	Whole  eval.Figure // share of paths that it follows to their end
	Length eval.Figure // mean number of tokens
}

// FiguresOf returns the figures of lengths, of paths of n tokens. The errors are standard errors over paths.
func FiguresOf(lengths []int, n int) Figures {
	whole, all := make([]float64, len(lengths)), make([]float64, len(lengths))
	for i, l := range lengths {
		if all[i] = float64(l); l == n {
			whole[i] = 1
		}
	}
	return Figures{figure(whole), figure(all)}
}

// Difference returns by how many tokens a model follows longer than another, in the mean of the same paths.
func Difference(a, b []int) eval.Figure {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = float64(a[i] - b[i])
	}
	return figure(d)
}

// figure returns the mean of values and its standard error, which is not a number for fewer than two.
func figure(values []float64) eval.Figure {
	n := float64(len(values))
	var f eval.Figure
	for _, v := range values {
		f.Mean += v
	}
	f.Mean /= n
	var squares float64
	for _, v := range values {
		squares += (v - f.Mean) * (v - f.Mean)
	}
	if f.Error = math.NaN(); n > 1 {
		f.Error = math.Sqrt(squares / (n - 1) / n)
	}
	return f
}
