package general_test

import (
	"fmt"
	"testing/fstest"

	"ggforge/convert/general"
)

func Example() {
	files := fstest.MapFS{
		"README.md":              {Data: []byte("---\nlicense: mit\nlanguage: [en, de]\n---\n")},
		"generation_config.json": {Data: []byte(`{"temperature": 0.5}`)},
	}
	m, err := general.Load(files, general.DirName("models/Acme-7B-chat-v2/"), general.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, kv := range m.KVs(general.Counts{Total: 6_900_000_000, Shared: 6_900_000_000}) {
		fmt.Println(kv.Key, kv.Value)
	}
	// Output:
	// general.type "model"
	// general.sampling.temp 0.5
	// general.name "Acme 7B Chat v2"
	// general.version "v2"
	// general.finetune "chat"
	// general.basename "Acme"
	// general.size_label "7B"
	// general.license "mit"
	// general.languages ["en", "de"]
}
