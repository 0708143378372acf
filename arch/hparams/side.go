package hparams

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"ggforge/fault"
)

// DenseModule is a layer of the sentence-transformers library that stands behind
// an embedding model, in a folder of its own.
type DenseModule struct {
	Name    string // of its tensor in the file, without suffix
	Dir     string // in the checkpoint
	In, Out int64  // sizes of its input and output
}

// denseNames are the names of the dense modules by their folders, which are named
// after their places in modules.json.
var denseNames = map[string]string{"2_Dense": "dense_2", "3_Dense": "dense_3"}

// DenseModules lists the dense modules that modules.json of the checkpoint names.
func (c *View) DenseModules() ([]DenseModule, error) {
	var modules []struct{ Type, Path string }
	if ok, err := c.File("modules.json", &modules); err != nil || !ok {
		return nil, err
	}
	var list []DenseModule
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Dense") {
			continue
		}
		d := DenseModule{Name: denseNames[m.Path], Dir: m.Path}
		if d.Name == "" {
			return nil, fault.Errorf(fault.Unsupported, "modules.json: dense module in %q, want 2_Dense or 3_Dense", m.Path)
		}
		var config struct {
			In         *int64 `json:"in_features"`
			Out        *int64 `json:"out_features"`
			Activation string `json:"activation_function"`
		}
		name := path.Join(m.Path, ConfigFile)
		ok, err := c.File(name, &config)
		switch {
		case err != nil:
			return nil, err
		case !ok || config.In == nil || config.Out == nil:
			return nil, fault.Errorf(fault.Broken, "%s: want in_features and out_features of the dense module", name)
		case config.Activation != "" && !strings.HasSuffix(config.Activation, ".Identity"):
			return nil, fault.Errorf(fault.Unsupported, "%s: activation_function %q, want none", name, config.Activation)
		}
		d.In, d.Out = *config.In, *config.Out
		list = append(list, d)
	}
	return list, nil
}

// File reads a JSON file of the checkpoint into v; ok is false when there is none.
func (c *View) File(name string, v any) (ok bool, err error) {
	if c.files == nil {
		return false, nil
	}
	data, err := c.files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil && !fault.Has(err) {
		err = fault.Errorf(fault.Broken, "%w", err)
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	return true, nil
}

// A reranker of the Qwen 3 family is a language model that is asked whether a
// document answers a query: of its output only the rows of "yes" and "no" matter.
// Nothing in the config tells it; as in the reference, its names and its model card
// do. Source: the Qwen3 class of the reference's converter.

var rerankerNames = []string{"qwen3-reranker", "qwen3-vl-reranker"}

func (c *View) Reranker() (bool, error) {
	if c.isReranker != nil {
		return *c.isReranker, nil
	}
	names := []string{c.dir, c.Class}
	for _, key := range []string{"_name_or_path", "model_type"} {
		if s, ok := c.Raw[key].(string); ok {
			names = append(names, s)
		}
	}
	found := false
	for _, hint := range rerankerNames {
		for _, name := range names {
			found = found || strings.Contains(strings.ToLower(name), hint)
		}
	}
	if !found && c.files != nil {
		card, err := c.readCard()
		if err != nil {
			return false, err
		}
		for _, hint := range rerankerNames {
			found = found || strings.Contains(card, "# "+hint)
		}
	}
	c.isReranker = &found
	return found, nil
}

// readCard returns the model card in lower case, "" without one.
func (c *View) readCard() (string, error) {
	data, err := c.files.ReadFile("README.md")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.ToLower(string(data)), err
}
