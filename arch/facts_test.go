package arch

import (
	"io/fs"
	"reflect"
	"testing"

	"ggforge/arch/config"
	"ggforge/fault"
)

// sideFiles are files by name.
type sideFiles map[string]string

func (f sideFiles) ReadFile(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// TestReranker checks the names and the model card by which rerankers are recognized.
func TestReranker(t *testing.T) {
	const vocab = `{"model": {"vocab": {"yes": 3}}, "added_tokens": [{"id": 7, "content": "yes"}, {"id": 8, "content": "no"}, {"id": 9, "content": "no"}]}`
	for name, c := range map[string]struct {
		files sideFiles
		dir   string
		want  config.Facts
	}{
		"nothing": {},
		"by-directory": {files: sideFiles{"tokenizer.json": vocab}, dir: "My-Qwen3-Reranker-0.6B",
			want: config.Facts{Dir: "My-Qwen3-Reranker-0.6B", Reranker: true,
				Tokens: map[string]int64{"yes": 3, "no": 8}}},
		"by-card": {files: sideFiles{"README.md": "---\n---\n# Qwen3-Reranker-0.6B\n"},
			want: config.Facts{Reranker: true, Tokens: map[string]int64{}}},
		"other-card": {files: sideFiles{"README.md": "see Qwen3-Reranker\n", "tokenizer.json": "{"}},
	} {
		v, err := view(t, `{"architectures": ["X"]}`).Gather(c.files, config.Facts{Dir: c.dir},
			[]*config.Source{rerankerFiles})
		if err != nil || !reflect.DeepEqual(v.Facts, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, v.Facts, err, c.want)
		}
	}
}

// FuzzFacts reads side files of any contents by the families' sources: an error has a kind.
func FuzzFacts(f *testing.F) {
	f.Add(`{"architectures": ["X"]}`, `{"model": {"vocab": {"yes": 1}}, "added_tokens": [{"id": 2, "content": "no"}]}`)
	f.Add(`{"architectures": ["X"]}`, `{"added_tokens_decoder": {"7": {"content": "[IMG_BREAK]"}}, "added_tokens": []}`)
	f.Add(`{"architectures": ["X"]}`, `{"added_tokens": [{"id": -1, "content": "[IMG_BREAK]"}], "decoder_config": []}`)
	f.Add(`{"vision_encoder": {"image_break_token_id": -1}}`, `{"special_tokens": [{"rank": 12, "token_str": "[IMG_BREAK]"}]}`)
	f.Add(`{"architectures": ["X"]}`, `{"model": {"type": "BPE", "vocab": {"\u010a": 0}, "merges": []}, "added_tokens": [{"id": 1, "content": "<slice>", "special": true}]}`)
	f.Add("null", "null")
	f.Fuzz(func(t *testing.T, text, side string) {
		files := sideFiles{"tokenizer_config.json": side, "tokenizer.json": side, "tekken.json": side,
			speechConfig: side, codecFolder + "/" + config.ConfigFile: side}
		check := func(c *config.Config, err error, sources ...*config.Source) {
			for _, s := range sources {
				if err == nil {
					_, err = c.View(config.Options{}).Gather(files, config.Facts{Dir: "qwen3-reranker"}, []*config.Source{s})
				}
				if err != nil && !fault.Has(err) {
					t.Errorf("%v has no kind", err)
				}
			}
		}
		c, err := config.ParseParams([]byte(text))
		check(c, err, paramsBreak)
		c, err = ParseConfig([]byte(text))
		check(c, err, rerankerFiles, breakToken, tileTokens, &config.Source{Read: readSpeech}, &config.Source{Read: readCodec})
	})
}
