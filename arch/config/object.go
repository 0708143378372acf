package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"ggforge/checkpoint/precision"
	"ggforge/fault"
)

// Object gives access to the members of an object of the configuration, and records which are read. The zero value has
// no members.
type Object struct {
	values map[string]any
	prefix string          // before the keys, in errors and in read
	read   map[string]bool // keys that were read; nil to record none
	file   string          // for errors; "" for ConfigFile
}

// ObjectIn returns v, the value of key, as an object that records nothing; ok is false if v is no object.
func ObjectIn(key string, v any) (o Object, ok bool) {
	m, ok := v.(map[string]any)
	return Object{values: m, prefix: key + "."}, ok
}

// lookup returns the first of keys that the object has, with its prefix, and the value. As in the reference, null is a
// value: later keys are ignored.
func (o Object) lookup(keys ...string) (key string, v any) {
	for _, key := range keys {
		if o.read != nil {
			o.read[o.prefix+key] = true
		}
		if v, ok := o.values[key]; ok {
			return o.prefix + key, v
		}
	}
	return "", nil
}

// Sub returns the object under key, an empty one if there is none.
func (o Object) Sub(key string) Object {
	_, v := o.lookup(key)
	m, _ := v.(map[string]any)
	return Object{m, o.prefix + key + ".", o.read, o.file}
}

// Under is Sub for package precision.
func (o Object) Under(key string) precision.Settings { return o.Sub(key) }

// Members returns the members of the object, not to be changed; nil for a missing object.
func (o Object) Members() map[string]any { return o.values }

// Value returns the value of a key, nil if it has none.
func (o Object) Value(key string) any {
	_, v := o.lookup(key)
	return v
}

// Present reports whether a key exists, even with null. It does not count as read.
func (o Object) Present(key string) bool {
	_, ok := o.values[key]
	return ok
}

// Has reports whether the first existing one of keys has a value other than null.
func (o Object) Has(keys ...string) bool {
	_, v := o.lookup(keys...)
	return v != nil
}

// Int returns the first existing one of keys as an integer. ok is false if none exists or if its value is null.
func (o Object) Int(keys ...string) (n int64, ok bool, err error) {
	key, v := o.lookup(keys...)
	x, ok, err := asInt(key, v)
	return x, ok, o.withFile(err)
}

// Require is Int; none of keys is an error.
func (o Object) Require(keys ...string) (int64, error) {
	n, ok, err := o.Int(keys...)
	return n, o.requireErr(ok, err, keys)
}

// requireErr returns err, or an error for keys of which none has a value.
func (o Object) requireErr(ok bool, err error, keys []string) error {
	if err != nil || ok {
		return err
	}
	if o.file == preprocessorFile && o.values == nil {
		return fault.Errorf(fault.Broken,
			"%s: %w (this file or %s must have %s, for the preprocessing of images and audio)",
			preprocessorFile, fs.ErrNotExist, processorFile,
			strings.Trim(fmt.Sprintf("%q", keys), "[]"))
	}
	if len(keys) == 1 {
		return fault.Errorf(fault.Broken, "%s: has no key %q", o.FileName(), o.prefix+keys[0])
	}
	return fault.Errorf(fault.Broken, "%s: has none of the keys %q", o.FileName(), o.Names(keys))
}

// Names returns keys with their prefix, for errors.
func (o Object) Names(keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = o.prefix + key
	}
	return names
}

// FileName returns the name of the file that the object is from, for errors.
func (o Object) FileName() string { return cmp.Or(o.file, ConfigFile) }

// withFile returns an error about a key with the name of the object's file.
func (o Object) withFile(err error) error {
	var e *keyError
	if o.file == "" || !errors.As(err, &e) {
		return err
	}
	named := *e
	named.file = o.file
	return &named
}

// Float is Int for numbers.
func (o Object) Float(keys ...string) (f float64, ok bool, err error) {
	key, v := o.lookup(keys...)
	x, ok, err := asFloat(key, v)
	return x, ok, o.withFile(err)
}

// RequireFloat is Require for numbers.
func (o Object) RequireFloat(keys ...string) (float64, error) {
	f, ok, err := o.Float(keys...)
	return f, o.requireErr(ok, err, keys)
}

// RequireBool is Require for flags.
func (o Object) RequireBool(keys ...string) (bool, error) {
	b, ok, err := o.Bool(keys...)
	return b, o.requireErr(ok, err, keys)
}

// String is Int for strings.
func (o Object) String(keys ...string) (s string, ok bool, err error) {
	key, v := o.lookup(keys...)
	x, ok, err := asString(key, v)
	return x, ok, o.withFile(err)
}

// Bool is Int for flags.
func (o Object) Bool(keys ...string) (b, ok bool, err error) {
	key, v := o.lookup(keys...)
	x, ok, err := asBool(key, v)
	return x, ok, o.withFile(err)
}

// Ints is Int for lists of integers.
func (o Object) Ints(keys ...string) (list []int64, ok bool, err error) {
	key, v := o.lookup(keys...)
	list, ok, err = asList(key, v, asInt)
	return list, ok, o.withFile(err)
}

// IntLists is Int for lists of lists of integers.
func (o Object) IntLists(keys ...string) (lists [][]int64, ok bool, err error) {
	key, v := o.lookup(keys...)
	lists, ok, err = asList(key, v, func(key string, v any) ([]int64, bool, error) { return asList(key, v, asInt) })
	return lists, ok, o.withFile(err)
}

// Floats is Int for lists of numbers.
func (o Object) Floats(keys ...string) (list []float64, ok bool, err error) {
	key, v := o.lookup(keys...)
	list, ok, err = asList(key, v, asFloat)
	return list, ok, o.withFile(err)
}

// RequireString is Require for strings.
func (o Object) RequireString(key string) (string, error) {
	s, ok, err := o.String(key)
	return s, o.requireErr(ok, err, []string{key})
}

// RequireFloats is Require for lists of numbers.
func (o Object) RequireFloats(keys ...string) ([]float64, error) {
	list, ok, err := o.Floats(keys...)
	return list, o.requireErr(ok, err, keys)
}

// Strings is Int for lists of strings.
func (o Object) Strings(keys ...string) (list []string, ok bool, err error) {
	key, v := o.lookup(keys...)
	list, ok, err = asList(key, v, asString)
	return list, ok, o.withFile(err)
}

// IntAt returns element i of the list under key; ok is false when there is no list.
// A list without such an element is an error.
func (o Object) IntAt(key string, i int64) (n int64, ok bool, err error) {
	return elementAt(o, key, i, asInt)
}

// StringAt is IntAt for strings.
func (o Object) StringAt(key string, i int64) (s string, ok bool, err error) {
	return elementAt(o, key, i, asString)
}

// ParseObject parses a JSON object; name is the file, for errors. Reads are not recorded.
func ParseObject(file string, data []byte) (Object, error) {
	values, err := parseRoot(file, data)
	return Object{values: values, file: file}, err
}

// ParseRecorded is ParseObject for an object that records which keys are read.
func ParseRecorded(file string, data []byte) (Object, error) {
	values, err := parseRoot(file, data)
	return Object{values: values, read: map[string]bool{}, file: file}, err
}

// ParseWith is ParseObject for an object whose reads are recorded with the view's.
func (v *View) ParseWith(file string, data []byte) (Object, error) {
	values, err := parseRoot(file, data)
	return Object{values: values, read: v.read, file: file}, err
}

// WrongType is the package's WrongType for a key of the object.
func (o Object) WrongType(key, want string, found any) error {
	return o.withFile(WrongType(o.prefix+key, want, found))
}
