package parts

import (
	"slices"

	"ggforge/arch/table"
	"ggforge/gguf"
)

// WithoutKeys returns rows except those with the given keys.
func WithoutKeys(rows []table.Row, keys ...string) []table.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r table.Row) bool { return slices.Contains(keys, r.Key) })
}

// Override returns rows in which each of more replaces the row with its key; without such a row it comes last.
func Override(rows []table.Row, more ...table.Row) []table.Row {
	rows = slices.Clone(rows)
	for _, r := range more {
		if i := slices.IndexFunc(rows, func(o table.Row) bool { return o.Key == r.Key }); i >= 0 {
			rows[i] = r
		} else {
			rows = append(rows, r)
		}
	}
	return rows
}

// UintRow returns the row of a required integer, from the first of keys that config.json has.
func UintRow(key string, from ...string) table.Row {
	return table.Row{Key: key, Type: gguf.Uint32Type, From: from, Required: true}
}

// FloatRow is UintRow for numbers.
func FloatRow(key string, from ...string) table.Row {
	return table.Row{Key: key, Type: gguf.Float32Type, From: from, Required: true}
}

// BoolRow is UintRow for flags.
func BoolRow(key string, from ...string) table.Row {
	return table.Row{Key: key, Type: gguf.BoolType, From: from, Required: true}
}

// Optional returns r as a row that is not required.
func Optional(r table.Row) table.Row {
	r.Required = false
	return r
}
