package config

import (
	"encoding/json"
	"fmt"
	"math"

	"ggforge/fault"
)

// WrongType is the error for a key with an unexpected value.
func WrongType(key, want string, found any) error {
	return &keyError{ConfigFile, key, fmt.Sprintf("want %s, found %s", want, excerpt(found))}
}

// keyError is an error about the value of a key, of kind fault.Broken.
type keyError struct{ file, key, text string }

func (e *keyError) Error() string { return fmt.Sprintf("%s: key %q: %s", e.file, e.key, e.text) }

func (e *keyError) Is(target error) bool { return target == fault.Broken }

// excerpt returns a value as JSON, cut when it is long.
func excerpt(v any) string {
	const most = 80
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > most {
		return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
	}
	return string(text)
}

func asInt(key string, v any) (int64, bool, error) {
	if v == nil {
		return 0, false, nil
	}
	num, ok := v.(json.Number)
	if !ok {
		return 0, false, WrongType(key, "an integer", v)
	}
	n, err := num.Int64()
	if err != nil {
		return 0, false, WrongType(key, "an integer", v)
	}
	return n, true, nil
}

func asFloat(key string, v any) (float64, bool, error) {
	if v == nil {
		return 0, false, nil
	}
	num, ok := v.(json.Number)
	if !ok {
		return 0, false, WrongType(key, "a number", v)
	}
	f, err := num.Float64()
	if err != nil || math.IsNaN(f) {
		return 0, false, WrongType(key, "a number that float64 can hold", v)
	}
	return f, true, nil
}

func asBool(key string, v any) (b, ok bool, err error) {
	if v == nil {
		return false, false, nil
	}
	if b, ok = v.(bool); !ok {
		return false, false, WrongType(key, "true or false", v)
	}
	return b, true, nil
}

func asList[T any](key string, v any, as func(string, any) (T, bool, error)) ([]T, bool, error) {
	if v == nil {
		return nil, false, nil
	}
	values, ok := v.([]any)
	if !ok {
		return nil, false, WrongType(key, "a list", v)
	}
	var list []T
	for i, v := range values {
		t, ok, err := as(fmt.Sprintf("%s[%d]", key, i), v)
		if err == nil && !ok {
			err = WrongType(key, "a list without null", v)
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, t)
	}
	return list, true, nil
}

func asString(key string, v any) (string, bool, error) {
	if v == nil {
		return "", false, nil
	}
	s, ok := v.(string)
	if !ok {
		return "", false, WrongType(key, "a string", v)
	}
	return s, true, nil
}

func elementAt[T any](o Object, key string, i int64, as func(string, any) (T, bool, error)) (t T, ok bool, err error) {
	key, v := o.lookup(key)
	if v == nil {
		return t, false, nil
	}
	list, isList := v.([]any)
	if !isList {
		return t, false, WrongType(key, "a list", v)
	}
	if i < 0 || i >= int64(len(list)) {
		return t, false, fault.Errorf(fault.Broken, "%s: key %q: has no element %d", ConfigFile, key, i)
	}
	at := fmt.Sprintf("%s[%d]", key, i)
	if t, ok, err = as(at, list[i]); err == nil && !ok {
		err = WrongType(at, "a value", list[i])
	}
	return t, ok, err
}
