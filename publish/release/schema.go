package release

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema returns the JSON schema of plans.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[Plan]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Plan of a release, for ggtool release"
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // never: maps of strings
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
