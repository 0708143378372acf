package safetensors

// ParseIndex gives the index parser to the tests in package safetensors_test.
func ParseIndex(path string, text []byte) (map[string]string, error) {
	index, err := parseIndex(path, text)
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	for _, p := range index {
		m[p.tensor] = p.file
	}
	return m, nil
}

const MaxPerKind = maxPerKind
