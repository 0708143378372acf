// Package modelfile writes Ollama's Modelfile for a GGUF file: what "ollama create NAME -f Modelfile" reads.
//
//	FROM ./Gollama-Q4_K_M.gguf          the model, a line for each of its shards, or a model that Ollama has
//	FROM ./mmproj-Gollama-F16.gguf      its vision or audio encoder
//	ADAPTER ./Gollama-LoRA-F16.gguf     a LoRA adapter of the model
//	PARAMETER temperature 0.7           from general.sampling.*
//	PARAMETER stop "<|eot_id|>"         from tokenizer.ggml.eot_token_id and eom_token_id
//	SYSTEM """..."""
//	LICENSE "apache-2.0"                from general.license
//
// Only what the file's metadata have, or the caller asks for, is written. There is no TEMPLATE unless the caller has
// one: Ollama runs the chat template of the GGUF file, and a Modelfile's template, in Go's language, replaces it.
//
// Metadata are untrusted: Quote refuses texts that Ollama's parser would read as anything but that text, so that none
// can add an instruction. Facts are those of ollama/ollama at fb30760: docs/modelfile.mdx, parser/parser.go,
// api/types.go and server/create.go, which joins shards by their names, and only those that FROM names.
package modelfile

import (
	"bytes"
	"fmt"
	"strings"
	"text/template/parse"

	"ggforge/fault"
)

// Modelfile is the content of a Modelfile. Its zero value lacks From, which is required.
type Modelfile struct {
	// From are paths of GGUF files, relative to the Modelfile and with slashes, or one name of a model of Ollama. Paths
	// begin with "./", "../" or "/".
	From []string
	// Adapter is the path of a LoRA adapter, "" for none.
	Adapter    string
	Parameters []Parameter
	Template   string // in Go's text/template; "" for none: that of the GGUF file is used
	System     string // the system message, "" for none
	License    string // "" for none
}

// Parameter is a setting of a model. Names other than stop occur once.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Text returns the content of the file. An error has kind fault.Usage for a text that a Modelfile cannot have, see
// Quote, for a path with more than one line, and for no From.
func (m *Modelfile) Text() ([]byte, error) {
	var b bytes.Buffer
	if len(m.From) == 0 {
		return nil, fault.Errorf(fault.Usage, "FROM: no model, want the path of a GGUF file or the name of a model")
	}
	add := func(instruction, text string) error {
		quoted, err := Quote(text)
		if err != nil {
			return fault.Errorf(fault.Usage, "%s: %w", instruction, err)
		}
		fmt.Fprintf(&b, "%s %s\n", instruction, quoted)
		return nil
	}
	path := func(instruction, name string) error {
		if plain(name) { // as in Ollama's documentation
			fmt.Fprintf(&b, "%s %s\n", instruction, name)
			return nil
		}
		if strings.ContainsAny(name, "\r\n") || strings.TrimSpace(name) == "" {
			return fault.Errorf(fault.Usage, "%s: %q: want a name of one line", instruction, name)
		}
		return add(instruction, name)
	}
	for _, name := range m.From {
		if err := path("FROM", name); err != nil {
			return nil, err
		}
	}
	if m.Adapter != "" {
		if err := path("ADAPTER", m.Adapter); err != nil {
			return nil, err
		}
	}
	for _, p := range m.Parameters {
		if p.Name == "" || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return nil, fault.Errorf(fault.Usage, "PARAMETER: %q is no name of a parameter", p.Name)
		}
		if p.Name != "stop" && plain(p.Value) {
			fmt.Fprintf(&b, "PARAMETER %s %s\n", p.Name, p.Value)
		} else if err := add("PARAMETER "+p.Name, p.Value); err != nil {
			return nil, err
		}
	}
	for _, text := range []struct{ instruction, text string }{
		{"TEMPLATE", m.Template}, {"SYSTEM", m.System}, {"LICENSE", m.License},
	} {
		if text.text != "" {
			if err := add(text.instruction, text.text); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), nil
}

// plain reports whether a name or a number is read as it is without quotes.
func plain(s string) bool {
	return s != "" && strings.Trim(s,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/:@~") == ""
}

// CheckTemplate returns an error of kind fault.Usage if text is not a template in the language of Ollama, which is that
// of Go's text/template with further functions.
func CheckTemplate(text string) error {
	if strings.Contains(text, "{%") {
		return fault.Errorf(fault.Usage, "a Jinja template: want one in Go's text/template; Ollama reads the Jinja "+
			"template of the GGUF file by itself")
	}
	tree := parse.New("template")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", map[string]*parse.Tree{}); err != nil {
		return fault.Errorf(fault.Usage, "want a template in Go's text/template: %w", err)
	}
	return nil
}
