package bucket

import "testing"

// FuzzState checks that an accepted state has an upload and sizes above 0.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"upload_id":"x","part_bytes":16777216,"size":3}`))
	f.Add([]byte(`{"upload_id": 3`))
	f.Add([]byte(`{"upload_id":"x","part_bytes":-1,"size":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, ok := parseState(data); ok && (s.Upload == "" || s.Part <= 0 || s.Size <= 0) {
			t.Errorf("%+v", s)
		}
	})
}

// FuzzParse checks that an accepted name is written as it was read, but for a slash at its end, and reads back.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"s3://b-1/k", "s3://bucket", "s3://bucket/a/../b", "s3://bucket//x", "s3://b_c/\x00",
		"s3://bucket/%2e%2e/?#"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, err := Parse(name)
		if err != nil {
			return
		}
		if s := n.String(); s != name && s != name+"/" {
			t.Errorf("%q is read as %q", name, s)
		}
		if again, err := Parse(n.String()); err != nil || again != n {
			t.Errorf("%q: %v %v", name, again, err)
		}
	})
}
