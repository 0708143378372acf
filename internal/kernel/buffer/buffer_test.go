package buffer

import "testing"

func TestResize(t *testing.T) {
	var buf []byte
	if s := Resize(&buf, 4); len(s) != 4 || len(buf) != 4 {
		t.Fatalf("%d and %d elements, want 4", len(s), len(buf))
	}
	buf[3] = 7
	first := &buf[0]
	if s := Resize(&buf, int64(2)); len(s) != 2 || len(buf) != 2 || &s[0] != first {
		t.Fatalf("%d elements, want the first 2 of the same memory", len(s))
	}
	if s := Resize(&buf, 4); &s[0] != first || s[3] != 7 {
		t.Fatal("longer again within its capacity: other memory")
	}
	if s := Resize(&buf, 5); len(s) != 5 || s[3] != 0 {
		t.Fatalf("beyond its capacity: %v, want 5 zeros", s)
	}
}
