package torch

import (
	"encoding/binary"
	"math"
)

// magic is the number that the older container begins with, little-endian.
const magic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"

// oldVersion is the version of the older container.
const oldVersion = 1001

// parseOld returns the object in an older container.
func parseOld(name string, data []byte) (value, error) {
	m := newMachine(name, data, 0)
	number, err := m.run()
	if err != nil {
		return nil, err
	}
	if number != value(long(magic)) {
		return nil, m.broken("has another magic number than torch.save writes")
	}
	version, err := m.run()
	if err != nil {
		return nil, err
	}
	if version != value(int64(oldVersion)) {
		return nil, m.unsupported("the version of the file is %v, want %d", version, oldVersion)
	}
	system, err := m.run()
	if err != nil {
		return nil, err
	}
	if d, ok := system.(*dict); ok {
		for _, p := range d.pairs {
			if p[0] == value("little_endian") && p[1] != value(true) {
				return nil, m.unsupported("was written on a big-endian machine")
			}
		}
	}
	top, err := m.run()
	if err != nil {
		return nil, err
	}
	keys, err := m.run()
	if err != nil {
		return nil, err
	}
	list, ok := keys.(*list)
	if !ok {
		return nil, m.broken("the keys of the storages are %s, want a list", kind(keys))
	}
	at := int64(m.pos)
	for _, v := range list.items {
		key, _ := v.(string)
		s := m.storages[key]
		if s == nil || s.found {
			return nil, m.broken("has a storage %s that no tensor names, or twice", quote(key))
		}
		bad := func(format string, args ...any) error {
			err := m.broken(format, args...).(*FormatError)
			err.Object, err.Offset = "storage "+quote(key), at
			return err
		}
		rest := int64(len(data)) - at
		if rest < 8 {
			return nil, bad("is cut off")
		}
		n := binary.LittleEndian.Uint64(data[at:])
		size := int64(1)
		if s.dtype != 0 {
			size = int64(s.dtype.Bits() / 8)
		}
		if n > math.MaxInt64/8 || int64(n)*size > rest-8 {
			return nil, bad("has %d elements of %d bytes, the file has %d bytes more: it is cut off", n, size, rest-8)
		}
		if err := s.place(name, at+8, int64(n)*size); err != nil {
			return nil, err
		}
		at += 8 + int64(n)*size
	}
	if rest := int64(len(data)) - at; rest > 0 {
		return nil, &FormatError{Path: name, Offset: at, Object: "data", Msg: "bytes after the last storage: want none"}
	}
	return top, m.located()
}
