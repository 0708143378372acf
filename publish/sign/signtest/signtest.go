// Package signtest makes keys for the tests of what signs.
package signtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"ggforge/publish/sign"
)

// Keys writes a new private key and its public key, and returns their paths.
func Keys(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, public = filepath.Join(dir, "key.pem"), filepath.Join(dir, "public.pem")
	if err := os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sign.ReadSigner(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(public, s.PublicKey, 0o666); err != nil {
		t.Fatal(err)
	}
	return private, public
}
