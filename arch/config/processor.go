package config

import "maps"

// The files with the preprocessing of images and audio. Where both have a key, the second one's value counts.
const (
	preprocessorFile = "preprocessor_config.json"
	processorFile    = "processor_config.json"
)

// readProcessor reads them. media_proc_cfg of the first and image_processor of the second are merged into the root.
// Without either file the object is empty, and a row that requires a value fails with an error that names the missing
// files, see Object.requireErr.
func readProcessor(files Files, _ *View, f *Facts) error {
	var all map[string]any
	for _, file := range []struct{ name, inner string }{{preprocessorFile, "media_proc_cfg"},
		{processorFile, "image_processor"}} {
		data, ok, err := ReadFile(files, file.name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		m, err := parseRoot(file.name, data)
		if err != nil {
			return err
		}
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, m)
		if inner, ok := m[file.inner].(map[string]any); ok {
			maps.Copy(all, inner)
		}
	}
	f.Processor = Object{values: all, read: map[string]bool{}, file: preprocessorFile}
	return nil
}
