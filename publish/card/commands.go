package card

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/publish/naming"
	"ggforge/publish/sign"
)

// served are the tasks of models that llama-server runs, with the mode that it takes for them.
var served = map[string]string{
	"text-generation": serveText, "image-text-to-text": serveText, "audio-text-to-text": serveText, "any-to-any": serveText,
	"feature-extraction": "embeddings", "sentence-similarity": "embeddings", "text-ranking": "reranking",
}

const serveText = "text"

// setCommands sets what the commands of a template are made of, and the sentence about the file to begin with.
func (c *Card) setCommands(opt Options) {
	var paths []string
	for _, list := range [][]File{c.Files, c.Sidecars} {
		for i := range list {
			paths = append(paths, list[i].paths()...)
		}
	}
	for _, t := range naming.Tags(paths) {
		for i := range c.Files {
			if f := &c.Files[i]; f.Path == t.File {
				f.LlamaCPPTag, f.LlamaCPPDefault, f.HubTag = t.LlamaCPP, t.LlamaCPPDefault, t.Hub
			}
		}
	}
	for i := range c.Files {
		f := &c.Files[i]
		f.Word, f.Literal = quoted(f.Path), strconv.QuoteToASCII(plain(f.Path))
		f.setInclude(paths)
	}
	if i := slices.IndexFunc(c.Sidecars, func(s File) bool { return s.What == encoderRole }); i >= 0 {
		c.Encoder = quoted(c.Sidecars[i].Path)
	}
	c.Serve = served[c.pipeline]
	if c.First = c.Pick; c.First == nil {
		c.First = c.usual()
	} else {
		c.Picked = c.about(c.Pick)
	}
	c.Sums, c.Manifest, c.Signed = c.has("SHA256SUMS"), c.has("manifest.json"), c.has(sign.ModelName)
	if sha256.MatchString(opt.SignatureKey) {
		c.SignatureKey = opt.SignatureKey
	}
	if _, name, ok := strings.Cut(c.Repository, "/"); ok {
		c.Folder = name
	}
}

// usual returns the file that llama.cpp takes if it is not told which one, the largest if there is none.
func (c *Card) usual() *File {
	for i := range c.Files {
		if c.Files[i].LlamaCPPDefault {
			return &c.Files[i]
		}
	}
	return &c.Files[0]
}

// paths returns the paths of all shards.
func (f *File) paths() []string {
	prefix, _, _, ok := gguf.ParseShardName(f.Path)
	if f.Shards < 2 || !ok {
		return []string{f.Path}
	}
	var list []string
	for i := range f.Shards {
		list = append(list, gguf.ShardName(prefix, i, f.Shards))
	}
	return list
}

// about returns a sentence about a file: size, divergence, memory.
func (c *Card) about(f *File) string {
	text := fmt.Sprintf("%s, %s: ", f.Link, f.Size)
	if m := f.measured; m.Top != nil {
		share := Figure{100 * m.Top.Mean, 100 * m.Top.Error}
		text += fmt.Sprintf("at %s %% of the positions of %s its most probable next token is that of the original, and ",
			within(share, 2), code(c.results.Text))
	}
	text += "the KL divergence is " + f.Divergence + " nats per token."
	if len(f.Memory) > 0 {
		text += fmt.Sprintf(" It takes %s of memory at a context of %s tokens.", f.Memory[0], c.Contexts[0])
	}
	return text
}

// setInclude sets the pattern that matches the file, all its shards, and no other of the paths.
func (f *File) setInclude(paths []string) {
	if prefix, _, _, ok := gguf.ParseShardName(f.Path); ok && f.Shards > 1 {
		f.Include = quoted(prefix + "-*.gguf")
	} else if pattern := "*" + f.HubTag + "*"; f.HubTag != "" && only(paths, f.Path, pattern) {
		f.Include = `"` + pattern + `"`
	} else {
		f.Include = f.Word
	}
}

// only reports whether a pattern matches the base of one path and of no other.
func only(paths []string, one, pattern string) bool {
	for _, p := range paths {
		if ok, err := path.Match(pattern, path.Base(p)); err != nil || ok != (p == one) {
			return false
		}
	}
	return true
}

// plainWord matches text that shells take as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._/@%+=:,-]+$`)

// quoted returns one word for a shell: cleaned by plain, so that it stays on its line.
func quoted(s string) string {
	s = plain(s)
	if plainWord.MatchString(s) && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// fence returns text as a block of code, whose fence is longer than any run of backticks in it.
func fence(language, text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	ticks := strings.Repeat("`", longest+1)
	return ticks + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + ticks
}
