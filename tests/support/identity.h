#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace delayq::support {

namespace identity {
using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;
}  // namespace identity

/// A key and its self-signed certificate, in one file.
class Identity {
 public:
  explicit Identity(const char* names)
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    X509_set_version(certificate_.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate_.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate_.get()), 3600);
    X509_set_pubkey(certificate_.get(), key_.get());
    X509_NAME* const name = X509_get_subject_name(certificate_.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("delayq test"), -1, -1, 0);
    X509_set_issuer_name(certificate_.get(), name);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    X509_add_ext(certificate_.get(), extension, -1);
    X509_EXTENSION_free(extension);
    const int descriptor = mkstemp(file_.data());
    EXPECT_GE(descriptor, 0);
    close(descriptor);
    X509_sign(certificate_.get(), key_.get(), EVP_sha256());
    std::FILE* const file = std::fopen(file_.c_str(), "w");
    PEM_write_X509(file, certificate_.get());
    PEM_write_PrivateKey(file, key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
  ~Identity() { std::remove(file_.c_str()); }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  EVP_PKEY* key() const { return key_.get(); }
  X509* certificate() const { return certificate_.get(); }
  const std::string& file() const { return file_; }

 private:
  identity::KeyPtr key_;
  identity::CertificatePtr certificate_;
  std::string file_ = testing::TempDir() + "delayq-XXXXXX";
};

}  // namespace delayq::support
