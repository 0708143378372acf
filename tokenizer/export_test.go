package tokenizer

// For the tests of package tokenizer_test, which take the rules from the tables of package arch.

type GoldenCase = goldenCase

var (
	DecodeNumbers = decodeNumbers
	ComparePairs  = comparePairs
	Number        = number
)

// Files of the fuzz targets.
const (
	RWKVFile, PlamoFile, SpieceFile, SPMBPEFile = rwkvFile, plamoFile, spieceFile, spmBPEFile
	ConfigFile, JSONFile, TekkenFile            = configFile, jsonFile, tekkenFile
	VocabTextFile                               = vocabTextFile
)

// Fingerprint returns the hash of the check text's ids.
func (t Tiktoken) Fingerprint(dir Files) (string, error) {
	r, err := (&files{dir: dir}).readRanks(t.File)
	if err != nil {
		return "", err
	}
	return r.fingerprint(t.Words)
}
