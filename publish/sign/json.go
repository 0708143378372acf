package sign

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep lists and objects are nested; signatures have 5 levels, those with a transparency log 8.
const maxDepth = 32

// object is a JSON object. Names are case-sensitive, and each is there once: another parser could take another one of
// two.
type object map[string]any

// parseObject parses a JSON object: nil, bool, json.Number, string, []any and object.
func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("has more than one value")
	}
	o, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("is not a JSON object")
	}
	return o, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	t, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			key, _ := name.(string) // the decoder refuses others
			if _, twice := o[key]; twice {
				return nil, fmt.Errorf("member %q is there twice", key)
			}
			if o[key], err = parseValue(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return o, err
	}
	return t, nil
}

// has reports whether there is a member other than null.
func (o object) has(name string) bool { return o[name] != nil }

// text returns a member that has to be a string; place names the object in errors.
func (o object) text(place, name string) (string, error) {
	s, ok := o[name].(string)
	if !ok {
		return "", broken("%s%s is %s, want a string", place, name, shown(o[name]))
	}
	return s, nil
}

// object returns a member that has to be an object.
func (o object) object(place, name string) (object, error) {
	v, ok := o[name].(object)
	if !ok {
		return nil, broken("%s%s is %s, want an object", place, name, shown(o[name]))
	}
	return v, nil
}

// objects returns a member that has to be a list of 1 to most objects.
func (o object) objects(place, name string, most int) ([]object, error) {
	list, ok := o[name].([]any)
	if !ok || len(list) == 0 {
		return nil, broken("%s%s is %s, want a list with an object", place, name, shown(o[name]))
	}
	if len(list) > most {
		return nil, broken("%s%s has %d elements, want at most %d", place, name, len(list), most)
	}
	var all []object
	for i, v := range list {
		x, ok := v.(object)
		if !ok {
			return nil, broken("%s%s[%d] is %s, want an object", place, name, i, shown(v))
		}
		all = append(all, x)
	}
	return all, nil
}

// bytes returns a member that has to be base64, of the usual alphabet or that for addresses, with padding.
func (o object) bytes(place, name string) ([]byte, error) {
	s, err := o.text(place, name)
	if err != nil {
		return nil, err
	}
	coding := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		coding = base64.URLEncoding
	}
	data, err := coding.Strict().DecodeString(s)
	if err != nil || len(data) == 0 || strings.ContainsAny(s, "\r\n") {
		return nil, broken("%s%s is not base64", place, name)
	}
	return data, nil
}

// shown describes a value in errors.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "missing"
	case string:
		return fmt.Sprintf("%.60q", v)
	case object:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	}
	return fmt.Sprintf("%.60v", v)
}
