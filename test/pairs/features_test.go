package pairs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// subject has the files that features work on.
type subject struct {
	model string // a GGUF file, or the first of its shards
	of    lineage

	shards   string // the first shard of a model
	shardsOf lineage

	matrix     string // an importance matrix
	matrixName string // see matrixName

	checkpoint string
	weights    []string // changes of the tensors in it

	models []found // all models that the last feature made
}

type found struct {
	path string
	of   lineage
}

// start has the files that every pair begins with.
var start = subject{
	model: "model.gguf", shards: "shards-00001-of-00003.gguf", shardsOf: lineage{shards: true},
	matrix: "im.gguf", matrixName: matrixName("ggeval imatrix", ""), checkpoint: "checkpoint",
}

// reads lists the parts of a subject that a feature reads.
type reads int

const (
	readsModel reads = 1 << iota
	readsShards
	readsMatrix
	readsCheckpoint
)

// feature is one task of a user.
type feature struct {
	name   string
	reads  reads
	folder bool // out is a folder
	reader bool // out has to exist
	// the default output: a file, a folder, the beginning of names; "" for features that write nothing, or in place
	out string

	// steps are the commands. force is --force, or nothing, for those that write.
	steps func(s subject, out string, force []string) [][]string
	also  func(dir string, s subject, out string) error // what the user does by hand after them

	writes   func(out string) []string            // patterns of files that are there afterwards; nil for out
	replaces func(s subject, out string) []string // of files that it changes or removes without --force
	knows    bool                                 // it distinguishes leftover files of a run from copies of them
	inPlace  bool                                 // the model is changed where it is
	makes    func(dir string, s subject, out string) (subject, error)
	// the result that has to equal that of the straight way; text is the last command's output
	look func(dir, out, text string) (string, error)

	// A feature that begins the one of this name and does not end it: of its steps, the first alone is run, and
	// killed when kill returns true, if kill is not nil.
	begins string
	kill   func(dir, out string) bool
	// patterns of files that are no results, which ggtool clean removes; nil for all that it writes
	temporary func(out string) []string
	again     bool // run again after another feature, it restores its outputs
	fresh     bool // used only between the beginning and the end of another feature
}

// padded is the feature that goes before all others in a lineage.
const padded = "ggtool pad-vocab"

const (
	edited = "general.description"
	edit   = "changed by hand"
)

// text has the flags of commands that run a model over a text.
var text = []string{"-f", "text.txt", "-c", "64", "--chunks", "2"}

func words(s string, more ...string) []string { return append(strings.Fields(s), more...) }

func one(argv []string) [][]string { return [][]string{argv} }

// becomes returns the field makes of a feature that writes one model with changed tensors.
func becomes(name string) func(string, subject, string) (subject, error) {
	return func(_ string, s subject, out string) (subject, error) {
		s.model, s.of = out, s.of.with(name)
		return s, nil
	}
}

// keeps returns the field makes of a feature that writes a model with the same tensors: only change alters its lineage.
func keeps(change func(l *lineage)) func(string, subject, string) (subject, error) {
	return func(_ string, s subject, out string) (subject, error) {
		change(&s.of)
		s.model = out
		return s, nil
	}
}

// setDescription notes what ggtool meta does in these rows.
func setDescription(l *lineage) { l.edits = map[string]string{edited: edit} }

// typesOf finds the files of several types in a folder, each by the end of its name.
func typesOf(name string, types ...string) func(string, subject, string) (subject, error) {
	return func(dir string, s subject, out string) (subject, error) {
		before := s.of
		for _, typ := range types {
			file, err := only(dir, path.Join(out, "*-"+typ+".gguf"))
			if err != nil {
				return s, err
			}
			s.models = append(s.models, found{file, before.with(name + " as " + typ)})
		}
		s.model, s.of = s.models[0].path, s.models[0].of
		return s, nil
	}
}

// bytesOf is the look of a file whose bytes count.
func bytesOf(dir, out, _ string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, out))
	return string(b), err
}

// notFigures are the lines of a report that are about files and time.
var notFigures = regexp.MustCompile(
	`(?m)^ *"(model|sha256|bytes|seconds|tokens_per_second|peak_memory_bytes|text|bits_per_weight)":.*\n`)

// figures is the look of features that print figures.
func figures(_, _, text string) (string, error) { return notFigures.ReplaceAllString(text, ""), nil }

func in(out string, patterns ...string) []string {
	for i, p := range patterns {
		patterns[i] = path.Join(out, p)
	}
	return patterns
}

// firstShard finds the first of the shards of a name.
func firstShard(dir, out string) (string, error) {
	return only(dir, strings.TrimSuffix(out, ".gguf")+"-00001-of-*.gguf")
}

// only finds the one file that a pattern is for.
func only(dir, pattern string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("%s: want one file: %v %v", pattern, files, err)
	}
	return path.Join(path.Dir(pattern), filepath.Base(files[0])), nil
}

// rowsDone reports whether a journal has records of some blocks of rows, 52 bytes each after its first line.
func rowsDone(dir, name string) bool {
	b, err := os.ReadFile(filepath.Join(dir, name))
	_, records, _ := bytes.Cut(b, []byte("\n"))
	return err == nil && len(records) >= 2*52
}

func size(dir, name string) int64 {
	st, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return -1
	}
	return st.Size()
}

// features are the rows.
var features []*feature

func init() {
	features = []*feature{
		// features that make models
		{
			name: "ggconv", reads: readsCheckpoint, out: "ggconv.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggconv --outtype f16 --model-name Gollama", append(force, s.checkpoint, out)...))
			},
			writes: func(out string) []string { return []string{out, path.Join(out, "Gollama-*-F16.gguf")} },
			makes: func(dir string, s subject, out string) (subject, error) {
				s.model, s.of = out, lineage{tensors: s.weights}
				if st, err := os.Stat(filepath.Join(dir, out)); err != nil || !st.IsDir() {
					return s, err
				}
				name, err := only(dir, path.Join(out, "Gollama-*-F16.gguf")) // into a folder
				s.model = name
				return s, err
			},
		},
		{
			name: "ggquant", reads: readsModel, out: "quantized.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant", append(force, s.model, out, "Q4_0")...))
			},
			makes: becomes("ggquant"),
		},
		{
			name: "ggquant DIR", reads: readsCheckpoint, out: "direct.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant --via f16 --model-name Gollama", append(force, s.checkpoint, out, "Q4_0")...))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.model, s.of = out, lineage{tensors: s.weights}.with("ggquant")
				return s, nil
			},
		},
		{
			name: "ggquant --imatrix", reads: readsModel | readsMatrix, out: "important.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant --imatrix "+s.matrix, append(force, s.model, out, "Q4_K_S")...))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.model, s.of = out, s.of.with("ggquant --imatrix@"+s.matrixName)
				return s, nil
			},
		},
		{
			name: "ggquant --calibrate", reads: readsModel, out: "calibrated.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant --calibrate text.txt -c 64 --chunks 2",
					append(force, s.model, out, "Q4_K_S")...))
			},
			makes: becomes("ggquant --calibrate"),
		},
		{
			name: "ggquant --effort high", reads: readsModel, out: "high.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words(
					"ggquant --calibrate text.txt -c 64 --chunks 1 --effort high --token-embedding-type f16",
					append(force, s.model, out, "Q4_0")...))
			},
			makes: becomes("ggquant --effort high"),
		},
		{
			name: "ggquant --out-dir", reads: readsModel, out: "several", folder: true,
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant --out-dir "+out, append(force, s.model, "Q8_0", "Q4_0")...))
			},
			writes: func(out string) []string { return append(in(out, "*-Q8_0.gguf", "*-Q4_0.gguf"), out) },
			makes:  typesOf("ggquant --out-dir", "Q8_0", "Q4_0"),
		},
		{
			name: "ggquant --part", reads: readsModel, out: "parts.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				command := words("ggquant", append(force, s.model, out, "Q5_0")...)
				return [][]string{append(slices.Clone(command), "--part", "1/2"),
					append(slices.Clone(command), "--part", "2/2"), append(slices.Clone(command), "--finish")}
			},
			makes: becomes("ggquant --part"),
		},
		{
			name: "ggquant --resume", reads: readsModel, out: "resumed.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant --resume -t 1", append(force, s.model, out, "IQ3_S")...))
			},
			makes: becomes("ggquant --resume"),
		},
		{
			name: "ggquant --resume, Q4_0", reads: readsModel, out: "resumed-Q4_0.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggquant --resume -t 1", append(force, s.model, out, "Q4_0")...))
			},
			makes: becomes("ggquant"),
		},

		// features that change files and keep the numbers
		{
			name: "ggtool meta", reads: readsModel, inPlace: true,
			steps: func(s subject, _ string, _ []string) [][]string {
				return [][]string{words("ggtool meta --set", edited+"=str:"+edit, s.model),
					words("ggtool meta --set", edited+"=str:"+edit, s.shards)}
			},
			replaces: func(s subject, _ string) []string { return []string{s.model, s.shards} },
			makes: func(_ string, s subject, _ string) (subject, error) {
				setDescription(&s.of)
				setDescription(&s.shardsOf)
				return s, nil
			},
		},
		{
			name: "ggtool meta --reserve", reads: readsModel, inPlace: true,
			steps: func(s subject, _ string, _ []string) [][]string {
				return [][]string{words("ggtool meta --reserve 64K --set", edited+"=str:"+edit, s.model),
					words("ggtool meta --reserve 64K --set", edited+"=str:"+edit, s.shards)}
			},
			replaces: func(s subject, _ string) []string { return []string{s.model, s.shards} },
			makes: func(_ string, s subject, _ string) (subject, error) {
				setDescription(&s.of)
				setDescription(&s.shardsOf)
				s.of.room, s.shardsOf.room = true, true
				return s, nil
			},
		},
		{
			name: "ggtool meta -o", reads: readsModel, out: "edited.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggtool meta", append(force, "--set", edited+"=str:"+edit, "-o", out, s.model)...))
			},
			makes: keeps(func(l *lineage) { setDescription(l) }),
		},
		{
			name: "ggtool split", reads: readsModel, out: "split",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggtool split --max-tensors 5", append(force, s.model, out)...))
			},
			writes: func(out string) []string {
				return []string{strings.TrimSuffix(out, ".gguf") +
					"-0000?-of-0000?.gguf"}
			},
			makes: func(dir string, s subject, out string) (subject, error) {
				name, err := firstShard(dir, out)
				s.model, s.of.shards, s.of.room = name, true, false
				s.shards, s.shardsOf = s.model, s.of
				return s, err
			},
		},
		{
			name: "ggtool merge", reads: readsShards, out: "merged.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggtool merge --clean", append(force, s.shards, out)...))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.model, s.of = out, s.shardsOf
				s.of.shards, s.of.room = false, false
				return s, nil
			},
		},
		{
			name: padded, reads: readsModel, out: "padded.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words(padded+" --multiple 100", append(force, s.model, out)...))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				big := s.of.big
				s.model, s.of = out, s.of.with(padded)
				s.of.big = big
				return s, nil
			},
		},
		{
			name: "ggtool endian", reads: readsModel, out: "big.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggtool endian --to big", append(force, s.model, out)...))
			},
			writes: func(out string) []string {
				return []string{out, strings.TrimSuffix(out, ".gguf") + "-0000?-of-0000?.gguf"}
			},
			makes: func(dir string, s subject, out string) (subject, error) {
				s.of.big, s.of.room, s.model = true, false, out
				if !s.of.shards {
					return s, nil
				}
				name, err := firstShard(dir, out)
				s.model = name
				s.shards, s.shardsOf = s.model, s.of
				return s, err
			},
		},
		{
			name: "ggtool export", reads: readsModel, out: "exported", folder: true,
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggtool export --hf", append(force, s.model, out)...))
			},
			also: func(dir string, s subject, out string) error {
				for _, name := range []string{"config.json", "generation_config.json", "special_tokens_map.json",
					"tokenizer.model", "tokenizer_config.json"} {
					b, err := os.ReadFile(filepath.Join(dir, "checkpoint", name))
					if err == nil {
						err = os.WriteFile(filepath.Join(dir, out, name), b, 0o666)
					}
					if err != nil {
						return err
					}
				}
				return nil
			},
			writes: func(out string) []string {
				return append(in(out, "model.safetensors", "*config.json", "special_tokens_map.json",
					"tokenizer.model"), out)
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.checkpoint, s.weights = out, append(slices.Clone(s.of.tensors), "ggtool export")
				return s, nil
			},
			look: func(dir, out, _ string) (string,
				error) {
				return bytesOf(dir, path.Join(out, "model.safetensors"), "")
			},
		},

		// features that run models
		{
			name: "ggeval imatrix", reads: readsModel, out: "matrix.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(slices.Concat(words("ggeval imatrix"), force, text, []string{"-o", out, s.model}))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.matrix, s.matrixName = out, s.of.matrixOf("ggeval imatrix")
				return s, nil
			},
			look: bytesOf,
		},
		{
			name: "ggeval imatrix --save-every", reads: readsModel, out: "saved.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(slices.Concat(words("ggeval imatrix -f text.txt -c 64 --chunks 6 -t 1 --save-every 1"),
					force, []string{"-o", out, s.model}))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.matrix, s.matrixName = out, s.of.matrixOf("ggeval imatrix --save-every")
				return s, nil
			},
			look: bytesOf,
		},
		{
			name: "ggeval imatrix --part", reads: readsModel, out: "shared.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				command := slices.Concat(words("ggeval imatrix --sum-chunks 1"), force, text,
					[]string{"-o", out, s.model})
				return [][]string{append(slices.Clone(command), "--part", "1/2"),
					append(slices.Clone(command), "--part", "2/2"), append(slices.Clone(command), "--finish")}
			},
			writes: func(out string) []string { return []string{out, out + ".part-?-of-2"} },
			makes: func(_ string, s subject, out string) (subject, error) {
				s.matrix, s.matrixName = out, s.of.matrixOf("ggeval imatrix --part")
				return s, nil
			},
			look: bytesOf,
		},
		{
			name: "ggtool imatrix merge", reads: readsMatrix, out: "sum.gguf",
			steps: func(s subject, out string, force []string) [][]string {
				return one(words("ggtool imatrix merge", append(force, s.matrix, s.matrix, out)...))
			},
			makes: func(_ string, s subject, out string) (subject, error) {
				s.matrix, s.matrixName = out, matrixName("ggtool imatrix merge", s.matrixName)
				return s, nil
			},
			look: bytesOf,
		},
		{
			name: "ggeval perplexity", reads: readsModel,
			steps: func(s subject, _ string, _ []string) [][]string {
				return one(slices.Concat(words("ggeval perplexity --json"), text, []string{s.model}))
			},
			look: figures,
		},
		{
			name: "ggeval perplexity --part", reads: readsModel, out: "figures",
			steps: func(s subject, out string, force []string) [][]string {
				command := slices.Concat(words("ggeval perplexity --json --part-files "+out), force, text,
					[]string{s.model})
				return [][]string{append(slices.Clone(command), "--part", "1/2"),
					append(slices.Clone(command), "--part", "2/2"), append(slices.Clone(command), "--finish")}
			},
			writes: func(out string) []string {
				return []string{out + ".part-?-of-2", path.Join(out, "perplexity.part-?-of-2")}
			},
			look: figures,
		},
		{
			name: "ggeval compare", reads: readsModel,
			steps: func(s subject, _ string, _ []string) [][]string {
				return one(slices.Concat(words("ggeval compare --json"), text, []string{"checkpoint", s.model}))
			},
			look: figures,
		},

		// features that look at files
		{
			name: "ggtool verify", reads: readsModel,
			steps: func(s subject, _ string, _ []string) [][]string {
				return [][]string{{"ggtool", "verify", s.model}, {"ggtool", "inspect", s.model},
					{"ggtool", "hash", s.model}, {"ggtool", "diff", s.model, s.model},
					{"ggtool", "quality", s.model, s.model}}
			},
		},
		{
			name: "ggtool imatrix check", reads: readsModel | readsMatrix,
			steps: func(s subject, _ string, _ []string) [][]string {
				return [][]string{{"ggtool", "imatrix", "show", s.matrix},
					{"ggtool", "imatrix", "check", s.matrix, "--model", s.model}}
			},
		},

		// features that publish
		{
			name: "ggtool card", reader: true, out: ".", folder: true,
			steps: func(_ subject, out string, force []string) [][]string {
				return one(words("ggtool card", append(force, out)...))
			},
			writes: func(out string) []string { return in(out, "README.md") },
			// the text between its marks
			replaces: func(_ subject, out string) []string { return in(out, "README.md") },
		},
		{
			name: "ggtool release", again: true, reads: readsModel, out: "released", folder: true,
			steps: func(s subject, out string, force []string) [][]string {
				return one(words(
					"ggtool release --type Q8_0 --type Q4_0 --calibrate text.txt -c 64 --chunks 2 --evaluate "+
						"text.txt --evaluate-chunks 1", append(force, "--source", s.model, "-o", out)...))
			},
			writes: func(out string) []string {
				return append(in(out, "*-Q8_0.gguf", "*-Q4_0.gguf", "*-imatrix.gguf", "quality.json", "README.md",
					"SHA256SUMS", "manifest.json"), path.Join(out, ".ggtool-release")+"/", out)
			},
			replaces: func(_ subject, out string) []string { // a card has marks
				return append(in(out, "README.md"), path.Join(out, ".ggtool-release")+"/")
			},
			makes: func(dir string, s subject, out string) (subject, error) {
				for _, argv := range [][]string{
					{"ggtool", "verify", "--sums", path.Join(out, "SHA256SUMS")},
					{"ggtool", "verify", "--manifest", path.Join(out, "manifest.json")},
				} {
					if code, _, stderr, err := run(dir, argv); code != 0 || err != nil {
						return s, fmt.Errorf("%v: %d %v %s", argv, code, err, stderr)
					}
				}
				matrix, err := only(dir, path.Join(out, "*-imatrix.gguf"))
				if err != nil {
					return s, err
				}
				matrixOf := s.of.matrixOf("ggeval imatrix")
				if s, err = typesOf("ggtool release", "Q8_0", "Q4_0")(dir, s, out); err != nil {
					return s, err
				}
				s.matrix, s.matrixName = matrix, matrixOf
				card, err := os.ReadFile(filepath.Join(dir, out, "README.md"))
				for _, m := range s.models {
					if !bytes.Contains(card, []byte(path.Base(m.path))) {
						err = errors.Join(err, fmt.Errorf("%s is not in the card", m.path))
					}
				}
				return s, err
			},
			look: func(dir, out, _ string) (string, error) {
				b, err := os.ReadFile(filepath.Join(dir, out, "quality.json"))
				if err != nil {
					return "", err
				}
				return figures("", "", string(b))
			},
		},
		{
			name: "ggtool clean --remove", knows: true,
			steps: func(subject, string, []string) [][]string {
				return one(words("ggtool clean --remove ."))
			},
			replaces: func(subject, string) []string {
				var all []string
				for _, f := range features {
					if f.begins != "" {
						all = append(all, f.temporary(f.out)...)
					}
				}
				return all
			},
		},
	}
	// unfinished runs
	for _, f := range []*feature{
		{
			name: "ggquant, killed", begins: "ggquant --resume",
			writes: func(out string) []string { return []string{out + ".partial", out + ".partial.rows"} },
			kill:   func(dir, out string) bool { return rowsDone(dir, out+".partial.rows") },
		},
		{
			name: "ggquant, a part", begins: "ggquant --part",
			writes: func(out string) []string {
				return []string{out + ".partial", out + ".partial.1-of-2.rows", out + ".partial.run"}
			},
		},
		{
			name: "ggeval imatrix, killed", begins: "ggeval imatrix --save-every",
			writes: func(out string) []string { return []string{out + ".state", out + ".state.partial"} },
			kill:   func(dir, out string) bool { return size(dir, out+".state") > 0 },
		},
		{
			name: "ggeval perplexity, a part", begins: "ggeval perplexity --part",
			temporary: func(string) []string { return nil },
			writes: func(out string) []string {
				return []string{out + ".part-1-of-2", path.Join(out, "perplexity.part-1-of-2")}
			},
		},
		{
			name: "ggtool release, killed", begins: "ggtool release",
			writes: func(out string) []string {
				return append(lookup("ggtool release").writes(out),
					in(out, "*.partial", "*.partial.rows", "ggforge-*")...)
			},
			temporary: func(out string) []string { return in(out, "*.partial", "*.partial.rows", "ggforge-*") },
			kill: func(dir, out string) bool {
				// while it measures the models, before it renames: a change of names is finished for the files
				// themselves only, not for copies
				models, err1 := filepath.Glob(filepath.Join(dir, out, "*-Q?_0.gguf"))
				names, err2 := filepath.Glob(filepath.Join(dir, out, "ggforge-*"))
				return err1 == nil && err2 == nil && len(models) == 2 && len(names) == 0
			},
		},
	} {
		whole := lookup(f.begins)
		f.reads, f.out, f.folder, f.steps = whole.reads, whole.out, whole.folder,
			func(s subject, out string, force []string) [][]string {
				return whole.steps(s, out, force)[:1]
			}
		if f.temporary == nil {
			f.temporary = f.writes
		}
		features = append(features, f)
	}
	features = append(features, &feature{
		// another model, a fine-tuned one, gets the name of the first
		name: "cp OTHER MODEL", reads: readsModel, inPlace: true, fresh: true,
		steps:    func(subject, string, []string) [][]string { return nil },
		replaces: func(s subject, _ string) []string { return []string{s.model} },
		also: func(dir string, s subject, _ string) error {
			name := filepath.Join(dir, s.model)
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for i := len(b) / 4; i < len(b); i += 2 { // the last bit of each F16
				b[i] ^= 1
			}
			return os.WriteFile(name, b, 0o666)
		},
		makes: func(_ string, s subject, _ string) (subject, error) {
			s.of = s.of.with("cp OTHER MODEL")
			return s, nil
		},
	})
}

func lookup(name string) *feature {
	for _, f := range features {
		if f.name == name {
			return f
		}
	}
	panic("no feature " + name)
}

// do runs the commands of a feature, which have to end well.
func (f *feature) do(dir string, s subject, out string, force []string) error {
	_, err := f.doText(dir, s, out, force)
	return err
}

func (f *feature) doText(dir string, s subject, out string, force []string) (string, error) {
	r := f.run(dir, s, out, force)
	if r.err == nil && r.code != 0 {
		r.err = fmt.Errorf("%v: exit code %d: %s", r.argv, r.code, r.message)
	}
	return r.text, r.err
}

// after returns the subject after a feature has ended well.
func (f *feature) after(dir string, s subject, out string) (subject, error) {
	s.models = nil
	if f.makes == nil {
		return s, nil
	}
	s, err := f.makes(dir, s, out)
	if err == nil && s.models == nil {
		s.models = []found{{s.model, s.of}}
	}
	return s, err
}

// result is the outcome of a feature's commands.
type result struct {
	code    int // of the first one that failed, else 0
	step    int // which one
	argv    []string
	message string
	text    string // what the last one printed
	err     error  // of ours
}

// errWhole is for a command that was to be killed and was too fast.
var errWhole = errors.New("ended before it was killed")

// run runs the commands of a feature.
func (f *feature) run(dir string, s subject, out string, force []string) (r result) {
	for r.step, r.argv = range f.steps(s, out, force) {
		if f.kill != nil {
			var dead bool
			if dead, r.code, r.err = killed(dir, r.argv, func(dir string) bool { return f.kill(dir, out) }); dead ||
				r.err != nil {
				r.code = 0
				return r
			}
			if r.code == 0 {
				r.err = errWhole
				return r
			}
		}
		if r.code, r.text, r.message, r.err = run(dir, r.argv); r.code != 0 || r.err != nil {
			return r
		}
	}
	if f.also != nil {
		r.err = f.also(dir, s, out)
	}
	return r
}
