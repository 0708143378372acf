package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggforge/checkpoint"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/mmap"
)

// Remote returns the settings for reading from servers, from environment variables that other tools read, too:
// HF_ENDPOINT and those of HubToken for the hub, those of bucket.Environment for objects. A file with a token that cannot
// be read is no error: most models need none.
func Remote() checkpoint.Remote {
	s3 := bucket.Environment()
	token, _ := HubToken()
	return checkpoint.Remote{Endpoint: os.Getenv("HF_ENDPOINT"), Token: token, S3Endpoint: s3.Endpoint,
		S3Region: s3.Region}
}

// maxToken is the largest file with a token, in bytes.
const maxToken = 4 << 10

// HubToken returns the token of the hub: HF_TOKEN, or the content of the file that the hub's own client
// writes when somebody logs in (HF_TOKEN_PATH, else token in HF_HOME, else in ~/.cache/huggingface); "" for none.
func HubToken() (string, error) {
	if token := strings.TrimSpace(os.Getenv("HF_TOKEN")); token != "" {
		return token, nil
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if path == "" {
		home := os.Getenv("HF_HOME")
		if home == "" {
			cache := os.Getenv("XDG_CACHE_HOME")
			if cache == "" {
				user, err := os.UserHomeDir()
				if err != nil {
					return "", nil
				}
				cache = filepath.Join(user, ".cache")
			}
			home = filepath.Join(cache, "huggingface")
		}
		path = filepath.Join(home, "token")
	}
	data, err := mmap.ReadFile(path, "token", maxToken)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}
