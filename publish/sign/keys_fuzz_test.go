package sign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"testing"

	"ggforge/fault"
)

// FuzzKeys reads private keys, public keys and certificates: what is accepted has a curve that the format has, and errors
// have a kind and nothing of a key.
func FuzzKeys(f *testing.F) {
	for _, name := range []string{"testdata/P-256/public.pem", "testdata/P-521/public.pem", "testdata/certificates/roots.pem"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P224()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			f.Fatal(err)
		}
		for kind, encode := range map[string]func() ([]byte, error){
			"PRIVATE KEY":    func() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(key) },
			"EC PRIVATE KEY": func() ([]byte, error) { return x509.MarshalECPrivateKey(key) },
		} {
			der, err := encode()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		}
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&other.PublicKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	f.Add([]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kinds := func(err error) {
			if !errors.Is(err, fault.Usage) && !errors.Is(err, fault.Unsupported) {
				t.Errorf("an error of no kind: %v", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("a long error: %v", err)
			}
		}
		if key, err := parseKey("x", data); err != nil {
			kinds(err)
		} else if hashOf(key.Curve) == 0 {
			t.Errorf("a key on %v", key.Curve)
		}
		if trust, err := trustKey("x", data); err != nil {
			kinds(err)
		} else if hashOf(trust.key.Curve) == 0 || len(trust.hint) != 64 {
			t.Errorf("trust in %+v", trust)
		}
		if list, err := parseCertificates("x", data); err != nil {
			kinds(err)
		} else if len(list) == 0 {
			t.Error("no certificate, and no error")
		}
	})
}
