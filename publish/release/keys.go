package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"ggforge/checkpoint"
)

// keyOf returns the SHA-256 of the parts as JSON, in hexadecimal digits.
func keyOf(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		data, err := json.Marshal(p)
		if err != nil {
			panic(err) // never: strings and numbers
		}
		fmt.Fprintf(h, "%d %s\n", len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// settings returns the keys that are set in a part of a plan, with their values. Paths are cut down to names, and the
// output is left out: the keys of steps do not depend on the place of the release. Nor do they, or the manifest, depend
// on what is made of the manifest: provenance and signature.
func settings(v any) any {
	x := reflect.Indirect(reflect.ValueOf(v))
	if !x.IsValid() {
		return nil
	}
	switch x.Kind() {
	case reflect.Struct:
		m := map[string]any{}
		for _, f := range fieldsOf(x.Type()) {
			if value := x.FieldByIndex(f.Index); !value.IsZero() {
				m[f.Tag.Get("plan")] = settings(value.Interface())
			}
		}
		for _, key := range []string{"text", "matrix", "template", "source"} {
			if s, ok := m[key].(string); ok && !checkpoint.IsRemote(s) {
				m[key] = baseName(s)
			}
		}
		for _, key := range []string{"output", "provenance", "sign"} {
			delete(m, key)
		}
		return m
	case reflect.Slice:
		list := []any{}
		for i := range x.Len() {
			list = append(list, settings(x.Index(i).Interface()))
		}
		return list
	}
	return x.Interface()
}

// baseName returns the last part of a path or an address.
func baseName(s string) string {
	s = strings.TrimRight(s, `/\`)
	return s[strings.LastIndexAny(s, `/\`)+1:]
}
