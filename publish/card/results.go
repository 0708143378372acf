package card

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"ggforge/fault"
)

// Figure is a mean with its standard error.
type Figure struct {
	Mean  float64 `json:"mean"`
	Error float64 `json:"error"`
}

// Result holds measurements of files over one text: the fields of the JSON output of ggeval compare or ggeval
// perplexity that a card shows.
type Result struct {
	Text      string // name of the text, without folders
	Chunk     int    // tokens of a chunk
	Predicted int    // number of tokens that the figures cover
	Base      *Figure
	Files     map[string]Measured // by file name, without folders; for a model in shards the name of the first shard
}

// Measured holds the measurements of a file.
type Measured struct {
	PPL        *Figure   // perplexity
	Divergence *Figure   // KL divergence from the model before quantization, in nats per token
	Ratio      *Figure   // its perplexity divided by that of the model before quantization, from paired losses
	Top        *Figure   // share of positions where both have the same most probable token
	Chunks     []float64 // mean divergence of each chunk of the text
	SHA256     string    // of the file, of the first shard of a split one; "" if unknown
}

// empty reports whether nothing was measured.
func (m *Measured) empty() bool { return m.PPL == nil && m.Divergence == nil }

// Limits of files that are read next to a model.
const (
	maxResult  = 64 << 20 // bytes of one file: a comparison has a number for each position and chunk
	maxResults = 200      // files
)

// sha256 matches a sum in hexadecimal digits.
var sha256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseResult reads the JSON of ggeval compare or ggeval perplexity. ok is false for JSON of another kind.
func ParseResult(data []byte) (r Result, ok bool) {
	type side struct {
		Model  string   `json:"model"`
		Recipe string   `json:"recipe"`
		PPL    *float64 `json:"ppl"`
		Error  *float64 `json:"ppl_error"`
		KLD    *struct {
			Mean  *float64 `json:"mean"`
			Error *float64 `json:"error"`
		} `json:"kl_divergence"`
		Chunks []float64 `json:"kl_divergence_by_chunk"`
		Ratio  *Figure   `json:"ppl_ratio"`
		Top    *Figure   `json:"same_top"`
		SHA256 string    `json:"sha256"`
	}
	var found struct {
		side
		Base      *side  `json:"base"`
		Models    []side `json:"models"`
		Text      string `json:"text"`
		Chunk     int    `json:"chunk"`
		Predicted int    `json:"predicted"`
	}
	if json.Unmarshal(data, &found) != nil {
		return r, false
	}
	figure := func(mean, err *float64) *Figure {
		if mean == nil {
			return nil
		}
		f := &Figure{Mean: *mean}
		if err != nil {
			f.Error = *err
		}
		return f
	}
	r = Result{Text: baseName(found.Text), Chunk: found.Chunk, Predicted: found.Predicted, Files: map[string]Measured{}}
	if found.Base == nil {
		found.Models = append(found.Models, found.side)
	} else {
		r.Base = figure(found.Base.PPL, found.Base.Error)
	}
	for _, m := range found.Models {
		measured := Measured{PPL: figure(m.PPL, m.Error), Ratio: m.Ratio, Top: m.Top, Chunks: m.Chunks}
		if sha256.MatchString(m.SHA256) {
			measured.SHA256 = m.SHA256
		}
		if m.KLD != nil {
			measured.Divergence = figure(m.KLD.Mean, m.KLD.Error)
		}
		if m.Recipe == "" && !measured.empty() { // skip recipes, which were measured without a file
			r.Files[baseName(m.Model)] = measured
		}
	}
	return r, len(r.Files) > 0
}

// baseName returns the last element of a path of any operating system.
func baseName(s string) string { return s[strings.LastIndexAny(s, `/\`)+1:] }

// readResults reads the named files of a folder, and returns those that are results of ggeval.
func readResults(dir string, names []string) (all []Result, err error) {
	if len(names) > maxResults {
		return nil, fault.Errorf(fault.Refused, "%s: %d files of JSON, want at most %d", dir, len(names), maxResults)
	}
	for _, name := range names {
		r, ok, err := readResult(path.Join(dir, name), os.Lstat)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, r)
		}
	}
	return all, nil
}

// readResult reads the results in a regular file of at most maxResult bytes. For other files, or other JSON, ok is
// false.
func readResult(path string, stat func(string) (fs.FileInfo, error)) (r Result, ok bool, err error) {
	info, err := stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxResult {
		return r, false, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, false, err
	}
	r, ok = ParseResult(data)
	return r, ok, nil
}

// ReadResult reads the results in a file that the user has named.
func ReadResult(path string) (Result, error) {
	r, ok, err := readResult(path, os.Stat)
	if err == nil && !ok {
		err = fault.Errorf(fault.Usage,
			"%s: not what ggeval compare or ggeval perplexity writes as JSON about GGUF files", path)
	}
	return r, err
}

// best returns the figures over the text that most files were measured on: figures over different texts cannot be
// compared. Results over one text are merged; for a file the last one counts.
func best(all []Result, files []string) Result {
	type text struct {
		name             string
		chunk, predicted int
	}
	by := map[text]*Result{}
	var order []text
	for _, r := range all {
		k := text{r.Text, r.Chunk, r.Predicted}
		if by[k] == nil {
			by[k] = &Result{Text: r.Text, Chunk: r.Chunk, Predicted: r.Predicted, Files: map[string]Measured{}}
			order = append(order, k)
		}
		to := by[k]
		if r.Base != nil {
			to.Base = r.Base
		}
		for name, m := range r.Files {
			if slices.Contains(files, name) {
				old := to.Files[name]
				if m.Divergence == nil {
					m.Divergence, m.Chunks, m.Ratio, m.Top = old.Divergence, old.Chunks, old.Ratio, old.Top
				}
				m.PPL, m.SHA256 = cmp.Or(m.PPL, old.PPL), cmp.Or(m.SHA256, old.SHA256)
				to.Files[name] = m
			}
		}
	}
	score := func(k text) (n int) {
		for _, m := range by[k].Files {
			if n++; m.Divergence != nil {
				n += len(files)
			}
		}
		return n
	}
	slices.SortStableFunc(order, func(a, b text) int { return cmp.Compare(score(b), score(a)) })
	if len(order) == 0 || score(order[0]) == 0 {
		return Result{}
	}
	return *by[order[0]]
}
