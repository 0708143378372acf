package general

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// Options are the settings that outrank the directory's files.
type Options struct {
	// Name, if not nil, is the model's name. An empty name writes none.
	Name *string
	// Organization is the organization in the model's path or id, used if no file has one; "" for none.
	Organization string
	// Override, if not nil, is a JSON object of general.* keys. Base models and datasets are lists of objects under
	// general.base_models and general.datasets. Unknown keys are ignored.
	Override []byte
	// OverrideFile is the name of Override in errors.
	OverrideFile string
	// Adapter: the tensors are pairs of a LoRA adapter, counted by the size of their products.
	Adapter bool
}

// Counts are the numbers of parameters of the written tensors. None is negative.
type Counts struct {
	Total  int64 // all
	Shared int64 // outside the expert stacks
	Expert int64 // of one expert: each stack's count divided by its experts, summed
	// Experts is the number of experts: the mean over the stacks, rounded down; 0
	// without any.
	Experts int64
}

// Count counts the parameters of tensors, names with dimensions in GGUF order. Stacked expert tensors, whose name holds
// "_exps.", count once per expert. With adapters among the tensors all counts are 0, as in the reference.
func Count(tensors iter.Seq2[string, []int64]) Counts {
	var n Counts
	var experts, stacks int64
	for name, ne := range tensors {
		if strings.HasSuffix(name, ".lora_b") {
			return Counts{}
		}
		size := gguf.Rows(ne) * gguf.RowLen(ne)
		n.Total += size
		if !strings.Contains(name, "_exps.") || len(ne) < 3 {
			n.Shared += size
			continue
		}
		n.Expert += size / max(1, ne[2])
		experts += ne[2]
		stacks++
	}
	if stacks > 0 {
		n.Experts = experts / stacks
	}
	return n
}

// Metadata has the general.* metadata in the files of one model.
type Metadata struct {
	// Warnings lists skipped settings.
	Warnings []string

	adapter    bool
	dir, org   string
	hub        text // _name_or_path, if it can be an id
	sampling   []gguf.KV
	card, over [nFields]text
	overridden [nFields]bool
	sources    [len(sourceLists)]*[]source
	arrays     []gguf.KV
}

// text is an optional string. An empty one is not written even if it is set.
type text struct {
	s   string
	set bool
}

// or returns t if it is set, otherwise u.
func (t text) or(u text) text {
	if t.set {
		return t
	}
	return u
}

// The fields of one string each, in the order in which they are written.
const (
	fieldName = iota
	fieldAuthor
	fieldVersion
	fieldOrganization
	fieldFinetune
	fieldBasename
	fieldDescription
	fieldQuantizedBy
	fieldSizeLabel
	fieldLicense
	fieldLicenseName
	fieldLicenseLink
	fieldURL
	fieldDOI
	fieldUUID
	fieldRepoURL
	fieldSourceURL
	fieldSourceDOI
	fieldSourceUUID
	fieldSourceRepoURL
	nFields
)

// fields has for each field its key, and the keys of the model card, of which the first one with a value other than
// null counts.
var fields = [nFields]struct {
	key  string
	card []string
}{
	fieldName:          {"general.name", []string{"name", "model_name"}},
	fieldAuthor:        {"general.author", []string{"author", "model_author", "model_creator"}},
	fieldVersion:       {"general.version", []string{"version", "model_version"}},
	fieldOrganization:  {"general.organization", []string{"organization", "model_organization"}},
	fieldFinetune:      {"general.finetune", []string{"finetune", "model_finetune"}},
	fieldBasename:      {"general.basename", []string{"basename", "model_basename", "model_type"}},
	fieldDescription:   {"general.description", []string{"description", "model_description"}},
	fieldQuantizedBy:   {"general.quantized_by", nil},
	fieldSizeLabel:     {"general.size_label", []string{"size_label", "model_size_label"}},
	fieldLicense:       {"general.license", []string{"license"}},
	fieldLicenseName:   {"general.license.name", []string{"license_name"}},
	fieldLicenseLink:   {"general.license.link", []string{"license_link"}},
	fieldURL:           {"general.url", nil},
	fieldDOI:           {"general.doi", nil},
	fieldUUID:          {"general.uuid", nil},
	fieldRepoURL:       {"general.repo_url", nil},
	fieldSourceURL:     {"general.source.url", []string{"url", "model_url"}},
	fieldSourceDOI:     {"general.source.doi", []string{"doi", "model_doi"}},
	fieldSourceUUID:    {"general.source.uuid", []string{"uuid", "model_uuid"}},
	fieldSourceRepoURL: {"general.source.repo_url", []string{"repo_url", "model_repo_url"}},
}

// samplingKeys are the recommended settings of the sampler, in the order in
// which they are written.
var samplingKeys = []struct {
	key  string // below general.sampling, also of Override
	typ  gguf.ValueType
	from []string // keys of generation_config.json; the first that exists counts, even if null
}{
	{"sequence", gguf.StringType, []string{"sequence"}},
	{"top_k", gguf.Int32Type, []string{"top_k"}},
	{"top_p", gguf.Float32Type, []string{"top_p"}},
	{"min_p", gguf.Float32Type, []string{"min_p"}},
	{"xtc_probability", gguf.Float32Type, []string{"xtc_probability"}},
	{"xtc_threshold", gguf.Float32Type, []string{"xtc_threshold"}},
	{"temp", gguf.Float32Type, []string{"temperature"}},
	{"penalty_last_n", gguf.Int32Type, []string{"penalty_last_n"}},
	{"penalty_repeat", gguf.Float32Type, []string{"penalty_repeat", "repetition_penalty"}},
	{"mirostat", gguf.Int32Type, []string{"mirostat"}},
	{"mirostat_tau", gguf.Float32Type, []string{"mirostat_tau"}},
	{"mirostat_eta", gguf.Float32Type, []string{"mirostat_eta"}},
}

// sourceLists are the lists of base models and datasets.
var sourceLists = [...]struct {
	key      string // of each entry: KEY.N.name
	override string
	card     []string // keys of the card; the first that exists counts, even if null
}{
	{"general.base_model", "general.base_models", []string{"base_model", "base_models", "base_model_sources"}},
	{"general.dataset", "general.datasets", []string{"datasets", "dataset", "dataset_sources"}},
}

// maxSources bounds the entries of a source list; published ones have some dozens.
const maxSources = 1 << 11

// source is one entry of a source list: an id, or fields given one by one.
type source struct {
	id     text
	fields [len(sourceFields)]text
}

// sourceFields are the fields of a source, in the order in which they are written.
var sourceFields = [...]string{"name", "author", "version", "organization", "description", "url", "doi",
	"uuid", "repo_url"}

// listKeys are the fields that are lists; the card's keys are appended to each other.
var listKeys = []struct {
	key  string
	card []string
}{
	{"general.tags", []string{"tags", "pipeline_tag"}},
	{"general.languages", []string{"languages", "language"}},
}

// Load reads the files of a model directory. dir is the directory's own name,
// see DirName.
func Load(files Files, dir string, opt Options) (*Metadata, error) {
	if !utf8.ValidString(dir) {
		return nil, fault.Errorf(fault.Broken, "directory name %q: not UTF-8", dir)
	}
	m := &Metadata{adapter: opt.Adapter, dir: dir, org: opt.Organization}
	card, err := readCard(files, m.warnf)
	if err != nil {
		return nil, err
	}
	config, err := readObject(files, configFile)
	if err != nil {
		return nil, err
	}
	generation, err := readGeneration(files, m.warnf)
	if err != nil {
		return nil, err
	}
	over := &document{file: opt.OverrideFile}
	if opt.Override != nil {
		if over, err = parseObject(opt.OverrideFile, opt.Override); err != nil {
			return nil, err
		}
	}
	if m.hub, err = hubID(config); err != nil {
		return nil, err
	}
	if opt.Name != nil {
		m.over[fieldName], m.overridden[fieldName] = text{*opt.Name, true}, true
	}
	for _, err := range []error{
		m.loadSampling(generation, over),
		m.loadFields(card, over),
		m.loadSources(card, over),
		m.loadLists(card, over),
	} {
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metadata) warnf(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}

// hubID returns config.json's _name_or_path unless it is a file path.
func hubID(config *document) (text, error) {
	v := config.get("_name_or_path")
	if v == nil {
		return text{}, nil
	}
	s, ok := v.(string)
	if !ok {
		return text{}, config.typeError("_name_or_path", "a string", v)
	}
	return text{s, strings.Count(s, "/") <= 1}, config.idLength("_name_or_path", s)
}

// idLength refuses an id that is too long.
func (d *document) idLength(key, id string) error {
	if len(id) > maxID {
		return fault.Errorf(fault.Broken, "%s: an id of %d bytes, want at most %d", d.at(key), len(id), maxID)
	}
	return nil
}

func (m *Metadata) loadSampling(generation, over *document) error {
	for _, row := range samplingKeys {
		doc, key := generation, generation.first(row.from)
		if k := "general.sampling." + row.key; over.has(k) {
			doc, key = over, k
		}
		v, ok, err := doc.scalar(key, row.typ)
		if err != nil {
			return err
		}
		if ok {
			m.sampling = append(m.sampling, gguf.KV{Key: "general.sampling." + row.key, Value: v})
		}
	}
	return nil
}

func (m *Metadata) loadFields(card, over *document) (err error) {
	for i, f := range fields {
		if m.overridden[i] {
			continue
		}
		if i != fieldLicense && over.has(f.key) {
			m.overridden[i] = true
			if m.over[i], err = over.text(f.key); err != nil {
				return err
			}
			continue
		}
		for _, key := range f.card {
			if card.get(key) == nil {
				continue
			}
			if i == fieldLicense {
				m.card[i], err = card.joined(key)
			} else {
				m.card[i], err = card.text(key)
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

func (m *Metadata) loadSources(card, over *document) error {
	for i, l := range sourceLists {
		doc, key, strict := card, card.first(l.card), false
		if over.has(l.override) {
			doc, key, strict = over, l.override, true
		}
		if !doc.has(key) || strict && doc.get(key) == nil {
			continue
		}
		list := []source{}
		var entries []any
		switch v := doc.get(key).(type) {
		case []any:
			entries = v
		case string:
			if strict {
				return doc.typeError(key, "a list of objects", v)
			}
			entries = []any{v}
		default:
			if strict {
				return doc.typeError(key, "a list of objects", v)
			}
			if v != nil {
				m.warnf("%s: want a string or a list, found %s: ignored", doc.at(key), describe(v))
			}
		}
		if len(entries) > maxSources {
			return fault.Errorf(fault.Broken, "%s: %d entries, want at most %d", doc.at(key), len(entries), maxSources)
		}
		for _, e := range entries {
			var s source
			switch e := e.(type) {
			case *pyjson.Object:
				for j, f := range sourceFields {
					if v, ok := e.Lookup(f); ok {
						t, ok := asText(v)
						if !ok {
							return doc.typeError(key, "a string as "+f, v)
						}
						s.fields[j] = t
					}
				}
			case string:
				if strict {
					return doc.typeError(key, "a list of objects", e)
				}
				if err := doc.idLength(key, e); err != nil {
					return err
				}
				s.id = text{e, true}
			default:
				if strict {
					return doc.typeError(key, "a list of objects", e)
				}
				m.warnf("%s: want an id or an object, found %s: entry left empty", doc.at(key), describe(e))
			}
			list = append(list, s)
		}
		m.sources[i] = &list
	}
	return nil
}

func (m *Metadata) loadLists(card, over *document) error {
	for _, l := range listKeys {
		var items []any
		doc, last := card, ""
		if over.has(l.key) {
			doc, last = over, l.key
			switch v := over.get(l.key).(type) {
			case nil:
			case []any:
				items = v
			default:
				return over.typeError(l.key, "a list", v)
			}
		} else {
			for _, key := range l.card {
				switch v := card.get(key).(type) {
				case string:
					items, last = append(items, v), key
				case []any:
					items, last = append(items, v...), key
				}
			}
		}
		if len(items) == 0 {
			continue
		}
		v, err := arrayOf(items)
		if err != nil {
			return fault.Errorf(fault.Broken, "%s: %w", doc.at(last), err)
		}
		m.arrays = append(m.arrays, gguf.KV{Key: l.key, Value: v})
	}
	return nil
}

// total returns the number of all parameters as the reference counts them, negative for adapters.
func (m *Metadata) total(n Counts) int64 {
	if m.adapter {
		return -n.Total
	}
	return n.Total
}

// fields returns the final value of every field.
func (m *Metadata) fields(n Counts) [nFields]text {
	t := m.card
	total := m.total(n)
	ids := []string{m.dir}
	if m.hub.set {
		ids = []string{m.hub.s, m.dir}
	}
	for _, s := range ids {
		id := parseID(s, total)
		t[fieldName] = t[fieldName].or(title(id.name))
		t[fieldOrganization] = t[fieldOrganization].or(title(id.org))
		t[fieldBasename] = t[fieldBasename].or(id.base)
		t[fieldFinetune] = t[fieldFinetune].or(id.finetune)
		t[fieldVersion] = t[fieldVersion].or(id.version)
		t[fieldSizeLabel] = t[fieldSizeLabel].or(id.size)
	}
	t[fieldOrganization] = t[fieldOrganization].or(title(text{m.org, m.org != ""}))
	for i, over := range m.overridden {
		if over {
			t[i] = m.over[i]
		}
	}
	t[fieldName] = t[fieldName].or(text{m.dir, true})
	if total > 0 {
		t[fieldSizeLabel] = t[fieldSizeLabel].or(text{n.SizeLabel(), true})
	}
	return t
}

// KVs returns the metadata in the order of writing: general.type, sampling,
// fields, sources, lists. The keys that depend on the conversion
// (general.architecture, file_type, quantization_version) are the caller's.
func (m *Metadata) KVs(n Counts) []gguf.KV {
	kvs := []gguf.KV{{Key: "general.type", Value: gguf.String("model")}}
	if m.adapter {
		kvs = []gguf.KV{{Key: "general.type", Value: gguf.String("adapter")},
			{Key: "adapter.type", Value: gguf.String("lora")}}
	}
	kvs = append(kvs, m.sampling...)
	add := func(key string, t text) {
		if t.s != "" {
			kvs = append(kvs, gguf.KV{Key: key, Value: gguf.String(t.s)})
		}
	}
	for i, t := range m.fields(n) {
		add(fields[i].key, t)
	}
	for i, list := range m.sources {
		if list == nil {
			continue
		}
		prefix := sourceLists[i].key
		kvs = append(kvs, gguf.KV{Key: prefix + ".count", Value: gguf.Uint32(uint32(len(*list)))})
		for j, s := range *list {
			if s.id.set {
				s = s.resolve(m.total(n))
			}
			for k, t := range s.fields {
				add(fmt.Sprintf("%s.%d.%s", prefix, j, sourceFields[k]), t)
			}
		}
	}
	return append(kvs, m.arrays...)
}

// FileName returns the reference's default name of the output file, for a file
// type such as "F16", made safe by [gguf.SafeName].
func (m *Metadata) FileName(n Counts, fileType string) string {
	kind := ""
	if m.adapter {
		kind = "-LoRA"
	}
	return gguf.SafeName(m.stem(n), "-"+strings.ToUpper(dashed(fileType))+kind+".gguf")
}

// NameOf returns the part of FileName before the type, from the metadata of a file; size is the default size label.
func NameOf(m gguf.Metadata, size string) string {
	var t [nFields]text
	for i, f := range fields {
		v, _ := m.Get(f.key)
		if s, _ := v.Str(); s != "" {
			t[i] = text{s[:min(len(s), maxNamed)], true}
		}
	}
	t[fieldSizeLabel] = t[fieldSizeLabel].or(text{size, size != ""})
	kind, _ := m.Get(gguf.KeyType)
	if s, _ := kind.Str(); s == "mmproj" {
		return "mmproj-" + strings.TrimPrefix(stem(t, text{}), "mmproj-")
	}
	return stem(t, t[fieldSizeLabel])
}

// maxNamed bounds the bytes of a metadata value in a file name, before gguf.SafeName.
const maxNamed = 1 << 10

// DraftFileName is FileName for a file of MTP layers.
func (m *Metadata) DraftFileName(n Counts, fileType string) string {
	return gguf.SafeName("mtp-"+stem(m.fields(n), text{}), "-"+strings.ToUpper(dashed(fileType))+".gguf")
}

// MMProjFileName is FileName for a vision or audio encoder; it has no size label.
func (m *Metadata) MMProjFileName(n Counts, fileType string) string {
	return gguf.SafeName("mmproj-"+stem(m.fields(n), text{}), "-"+strings.ToUpper(dashed(fileType))+".gguf")
}

// VocabFileName is FileName for a file with the vocabulary only.
func (m *Metadata) VocabFileName() string {
	return gguf.SafeName(stem(m.fields(Counts{}), text{}), "-vocab.gguf")
}

func dashed(s string) string { return strings.ReplaceAll(strip(s), " ", "-") }

// stem returns the part of the reference's default file name before the type.
func (m *Metadata) stem(n Counts) string {
	t := m.fields(n)
	return stem(t, t[fieldSizeLabel])
}

func stem(t [nFields]text, size text) string {
	name := strings.ReplaceAll(dashed(t[fieldBasename].or(t[fieldName]).s), "/", "-")
	if size.set {
		name += "-" + size.s
	}
	for _, part := range []text{t[fieldFinetune], t[fieldVersion]} {
		if part.set {
			name += "-" + dashed(part.s)
		}
	}
	return name
}
