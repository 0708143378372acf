package manifest

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema returns the JSON schema of manifests.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[Manifest]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Manifest of a run of ggconv or ggquant, for ggtool reproduce"
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // never: maps of strings
	}
	return append(data, '\n')
}

// schemaOf returns the schema of a type by the tags of its fields.
func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int64:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue // its fields are listed
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := schemaOf(f.Type)
		s["description"] = f.Tag.Get("doc")
		properties[name] = s
		if rest == "" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
}
