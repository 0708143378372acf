package release

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggforge/checkpoint"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/internal/io/mmap"
	"ggforge/internal/text/nearest"
	"ggforge/internal/text/size"
	"ggforge/publish/naming"
	"ggforge/quantize"
	"ggforge/quantize/allocate"
)

// Plan describes a release: its source and its files. Its fields are the keys of a file in YAML or JSON;
// doc is what the schema says of them.
type Plan struct {
	Source      string       `plan:"source" need:"true" doc:"a checkpoint directory, a GGUF file or the first of its shards, hf://ORG/NAME[@REVISION] or s3://BUCKET/FOLDER, or one of these and /FILE.gguf"`
	Output      string       `plan:"output" doc:"the folder that the release is written to; it is made if it is not there"`
	Outputs     []Output     `plan:"outputs" need:"true" doc:"the models to write: types of ggquant, such as Q4_K_M, or objects"`
	Layout      string       `plan:"layout" enum:"flat,folders" doc:"flat: all files in one folder; folders: one for each type"`
	Template    string       `plan:"name_template" doc:"name files so; {name} stands for the model's name, size, fine-tune and version, {ftype} and {FTYPE} for the type (default: {name}-{FTYPE})"`
	Split       Size         `plan:"split" doc:"write shards of at most so many bytes of tensors, such as 2G"`
	Via         string       `plan:"via" enum:"auto,f32,f16,bf16" doc:"take the weights of a checkpoint as if converted to this type first"`
	Calibration *Calibration `plan:"calibration" doc:"where importance comes from"`
	Encoders    []string     `plan:"towers" enum:"f32,f16,bf16,q8_0" doc:"write the vision or audio encoder of the checkpoint in these types"`
	Evaluation  *Evaluation  `plan:"evaluation" doc:"measure how far each model is from the source"`
	Card        *Card        `plan:"card" doc:"about the model card"`
	Pages       bool         `plan:"pages" doc:"write a page of HTML about each model, next to it"`
	ModelName   string       `plan:"model_name" doc:"call the model of a checkpoint so"`

	path string // "" for one that is no file
}

// Output is a model to write.
type Output struct {
	Type  string  `plan:"type" need:"true" doc:"a type of ggquant, such as Q4_K_M"`
	Name  string  `plan:"name" doc:"the encoding in the file's name, if it is not the type: letters, digits and underscores"`
	BPW   float64 `plan:"bpw" doc:"choose types of tensors that lose the least at so many bits per weight"`
	Size  Size    `plan:"size" doc:"choose types of tensors that lose the least in files of so many bytes"`
	Like  string  `plan:"like" doc:"choose types of tensors that lose the least at the size of this type"`
	KLD   float64 `plan:"kld" doc:"choose the smallest types with which the model diverges by so many nats for a token at most"`
	Types string  `plan:"types" doc:"the types to choose from, with commas"`

	line int
}

// Calibration is where importance comes from: a text, or a matrix that is there.
type Calibration struct {
	Text          string `plan:"text" doc:"a text; the matrix that is made with it is a part of the release"`
	Matrix        string `plan:"matrix" doc:"an importance matrix, of either format"`
	Effort        string `plan:"effort" enum:"matrix,high,best" doc:"high and best choose blocks by the text, too"`
	Chunk         int    `plan:"chunk" doc:"tokens of a chunk of the text (512)"`
	Chunks        int    `plan:"chunks" doc:"take so many chunks (0: all)"`
	ProcessOutput bool   `plan:"process_output" doc:"collect for the matrix that makes logits, too"`
}

// Evaluation is how models are measured.
type Evaluation struct {
	Text   string `plan:"text" need:"true" doc:"a text; that of the calibration would flatter"`
	Chunk  int    `plan:"chunk" doc:"tokens of a chunk of the text (512)"`
	Chunks int    `plan:"chunks" doc:"take so many chunks (0: all)"`
}

// Card is about the model card.
type Card struct {
	Off         bool   `plan:"off" doc:"write none"`
	BaseModel   string `plan:"base_model" doc:"the hub's model that the files are quantized from, ORG/NAME"`
	QuantizedBy string `plan:"quantized_by" doc:"who quantizes it"`
	Template    string `plan:"template" doc:"a template, of Go's text/template"`
}

// Size is a number of bytes.
type Size int64

// maxPlan is the largest plan in bytes, maxOutputs how many models it can have.
const (
	maxPlan    = 1 << 20
	maxOutputs = 200
)

// Read reads a plan. Paths in it are relative to its folder.
func Read(path string) (*Plan, error) {
	data, err := mmap.ReadFile(path, "plan", maxPlan)
	if err != nil {
		return nil, err
	}
	p, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	local := func(s *string) {
		if *s != "" && !checkpoint.IsRemote(*s) && !filepath.IsAbs(*s) {
			*s = filepath.Join(dir, filepath.FromSlash(*s))
		}
	}
	local(&p.Source)
	local(&p.Output)
	if c := p.Calibration; c != nil {
		local(&c.Text)
		local(&c.Matrix)
	}
	if p.Evaluation != nil {
		local(&p.Evaluation.Text)
	}
	if p.Card != nil {
		local(&p.Card.Template)
	}
	return p, nil
}

// Parse reads the text of a plan, in YAML or JSON. What is wrong with it is an error of kind fault.Usage that
// names the line.
func Parse(path string, data []byte) (*Plan, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, fault.Errorf(fault.Usage, "%s: %w", path, err)
	}
	p := &Plan{path: path}
	if len(node.Content) == 0 {
		return nil, fault.Errorf(fault.Usage, "%s: is empty, want a plan", path)
	}
	d := decoder{path: path}
	if err := d.value(reflect.ValueOf(p).Elem(), node.Content[0], "", ""); err != nil {
		return nil, err
	}
	if len(p.Outputs) > maxOutputs {
		return nil, fault.Errorf(fault.Usage, "%s: %d outputs, want at most %d", path, len(p.Outputs), maxOutputs)
	}
	return p, nil
}

// decoder reads values at nodes whose lines it knows.
type decoder struct{ path string }

func (d *decoder) fail(n *yaml.Node, name, format string, args ...any) error {
	if name != "" {
		name += ": "
	}
	return fault.Errorf(fault.Usage, "%s, line %d: %s%s", d.path, n.Line, name, fmt.Sprintf(format, args...))
}

// shown returns what an error shows of a node.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return fmt.Sprintf("%.60q", n.Value)
}

// value sets v to what a node says. enum are the texts that it may be, with commas.
func (d *decoder) value(v reflect.Value, n *yaml.Node, name, enum string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem(), n, name, enum)
	}
	scalar := n.Kind == yaml.ScalarNode && n.Tag != "!!null"
	if v.Type() == reflect.TypeFor[Size]() {
		bytes, err := size.Parse(n.Value)
		if !scalar || err != nil {
			return d.fail(n, name, "is %s, want a size such as 500M, 1.5G or 2MiB", shown(n))
		}
		v.SetInt(bytes)
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(v, n, name)
	case reflect.Slice:
		list := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			list = n.Content
		} else if n.Kind != yaml.ScalarNode {
			return d.fail(n, name, "is %s, want a list", shown(n))
		}
		for i, item := range list {
			one := reflect.New(v.Type().Elem()).Elem()
			if err := d.value(one, item, name+"["+strconv.Itoa(i)+"]", enum); err != nil {
				return err
			}
			v.Set(reflect.Append(v, one))
		}
	case reflect.String:
		if !scalar || n.Value == "" {
			return d.fail(n, name, "is %s, want a text", shown(n))
		}
		if options := strings.Split(enum, ","); enum != "" && !slices.Contains(options, n.Value) {
			return d.fail(n, name, "is %s, want one of %s%s", shown(n), strings.Join(options, ", "),
				nearest.Hint(n.Value, options))
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if !scalar || n.Tag != "!!bool" {
			return d.fail(n, name, "is %s, want true or false", shown(n))
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int:
		i, err := strconv.ParseInt(n.Value, 10, 32)
		if !scalar || err != nil || i < 0 {
			return d.fail(n, name, "is %s, want a number that is not negative", shown(n))
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if !scalar || err != nil || !(f > 0) || math.IsInf(f, 0) {
			return d.fail(n, name, "is %s, want a number above 0", shown(n))
		}
		v.SetFloat(f)
	}
	return nil
}

// object sets the fields of a struct. An Output may be its type alone.
func (d *decoder) object(v reflect.Value, n *yaml.Node, name string) error {
	if out, ok := v.Addr().Interface().(*Output); ok {
		out.line = n.Line
		if n.Kind == yaml.ScalarNode {
			return d.value(v.FieldByName("Type"), n, name, "")
		}
	}
	if n.Kind != yaml.MappingNode {
		return d.fail(n, name, "is %s, want an object with keys", shown(n))
	}
	prefix := name
	if prefix != "" {
		prefix += "."
	}
	fields := fieldsOf(v.Type())
	var names []string
	for _, f := range fields {
		names = append(names, f.Tag.Get("plan"))
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.Index(names, key.Value)
		switch {
		case at < 0:
			return d.fail(key, "", "unknown key %q%s; the keys%s are %s", prefix+key.Value,
				nearest.Hint(key.Value, names), inside(name), strings.Join(names, ", "))
		case seen[key.Value]:
			return d.fail(key, "", "key %q is there twice", prefix+key.Value)
		}
		seen[key.Value] = true
		if err := d.value(v.FieldByIndex(fields[at].Index), value, prefix+key.Value,
			fields[at].Tag.Get("enum")); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if key := f.Tag.Get("plan"); f.Tag.Get("need") != "" && !seen[key] {
			return d.fail(n, "", "there is no key %q", prefix+key)
		}
	}
	return nil
}

func inside(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// fieldsOf returns the fields of a struct that are keys.
func fieldsOf(t reflect.Type) (list []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("plan") != "" {
			list = append(list, f)
		}
	}
	return list
}

// Schema returns the JSON schema of plans.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[Plan]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Plan of a release, for ggtool release"
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // maps of texts
	}
	return append(data, '\n')
}

// schemaOf returns the schema of a type.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	case t == reflect.TypeFor[Size]():
		return map[string]any{"type": []string{"string", "integer"}, "pattern": `^[0-9.]+([KMGTkmgt][Ii]?)?[Bb]?$`}
	}
	switch t.Kind() {
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string", "minLength": 1}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number", "exclusiveMinimum": 0}
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t) {
		s := schemaOf(f.Type)
		s["description"] = f.Tag.Get("doc")
		if enum := f.Tag.Get("enum"); enum != "" {
			to := s
			if items, ok := s["items"].(map[string]any); ok {
				to = items
			}
			to["enum"] = strings.Split(enum, ",")
		}
		name := f.Tag.Get("plan")
		properties[name] = s
		if f.Tag.Get("need") != "" {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if t == reflect.TypeFor[Output]() {
		return map[string]any{"anyOf": []any{map[string]any{"type": "string", "minLength": 1}, s}}
	}
	return s
}

// settled is a plan whose texts have been understood.
type settled struct {
	recipes  []*quantize.Recipe
	targets  []target
	limits   []allocate.Limit
	via      convert.OutType
	encoders []convert.OutType
}

// target is what an output is to come to besides its recipe.
type target struct {
	like *quantize.Recipe
}

// place names an output of the plan in errors.
func (p *Plan) place(o *Output) string {
	if p.path == "" || o.line == 0 {
		return "output " + o.Type
	}
	return fmt.Sprintf("%s, line %d: output %s", p.path, o.line, o.Type)
}

func (p *Plan) about(what string) string {
	if p.path == "" {
		return what
	}
	return p.path + ": " + what
}

// settle checks what a plan says.
func (p *Plan) settle() (*settled, error) {
	s := &settled{via: convert.Auto}
	fail := func(format string, args ...any) error { return fault.Errorf(fault.Usage, format, args...) }
	if p.Output == "" {
		return nil, fail("%s", p.about("there is no output folder"))
	}
	if len(p.Outputs) == 0 {
		return nil, fail("%s", p.about("there are no outputs"))
	}
	if p.Template != "" {
		if err := naming.CheckTemplate(p.Template); err != nil {
			return nil, fmt.Errorf("%s: %w", p.about("name_template"), err)
		}
	}
	var names []string
	for _, r := range quantize.Recipes() {
		names = append(names, r.Name)
	}
	recipe := func(o *Output, name string) (*quantize.Recipe, error) {
		r, ok := quantize.LookupRecipe(name)
		if !ok {
			return nil, fail("%s: unknown type %q%s", p.place(o), name, nearest.Hint(name, names))
		}
		return r, nil
	}
	limits := ""
	for i := range p.Outputs {
		o := &p.Outputs[i]
		r, err := recipe(o, o.Type)
		if err != nil {
			return nil, err
		}
		var t target
		n := 0
		for _, set := range []bool{o.BPW > 0, o.Size > 0, o.Like != "", o.KLD > 0} {
			if set {
				n++
			}
		}
		if o.Like != "" {
			if t.like, err = recipe(o, o.Like); err != nil {
				return nil, err
			}
		}
		switch {
		case n > 1:
			return nil, fail("%s: want only one of bpw, size, like and kld", p.place(o))
		case n == 0 && o.Types != "":
			return nil, fail("%s: types goes with one of bpw, size, like and kld", p.place(o))
		case n == 0:
		case p.Calibration == nil || p.Calibration.Text == "":
			return nil, fail("%s: types of tensors are chosen by a text: want calibration.text", p.place(o))
		case p.Split > 0:
			return nil, fail("%s: types of tensors cannot be chosen for shards: want no split", p.place(o))
		case limits != "" && o.Types != "" && o.Types != limits:
			return nil, fail("%s: types is %s here and %s above: want the same for all outputs", p.place(o),
				o.Types, limits)
		}
		if o.Types != "" && limits == "" {
			limits = o.Types
			l, err := allocate.ParseLimit(o.Types)
			if err != nil {
				return nil, fmt.Errorf("%s: types: %w", p.place(o), err)
			}
			s.limits = append(s.limits, l)
		}
		if strings.Trim(o.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" ||
			len(o.Name) > 16 {
			return nil, fail("%s: name is %q, want at most 16 letters, digits and underscores", p.place(o), o.Name)
		}
		s.recipes, s.targets = append(s.recipes, r), append(s.targets, t)
	}
	var err error
	if p.Via != "" {
		if s.via, err = convert.ParseOutType(p.Via); err != nil {
			return nil, fmt.Errorf("%s: %w", p.about("via"), err)
		}
	}
	for _, name := range p.Encoders {
		t, err := convert.ParseOutType(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.about("towers"), err)
		}
		s.encoders = append(s.encoders, t)
	}
	if c := p.Calibration; c != nil {
		switch {
		case (c.Text == "") == (c.Matrix == ""):
			return nil, fail("%s", p.about("calibration: want one of text and matrix"))
		case c.Matrix != "" && (c.Effort != "" && c.Effort != "matrix" || c.Chunk > 0 || c.Chunks > 0 ||
			c.ProcessOutput):
			return nil, fail("%s", p.about("calibration: effort, chunk, chunks and process_output go with text"))
		}
	}
	return s, nil
}
