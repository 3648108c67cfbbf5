#include "signing/signature.h"

#include <gtest/gtest.h>

namespace delayq::signing {
namespace {

constexpr std::string_view kId = "msg_p5jXN8AQM9LWM0D4loKWxJek";
constexpr std::string_view kBody = R"({"test": 2432232314})";
constexpr std::string_view kSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const std::string kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const std::string kOther = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const Moment kSent = from_unix_ms(1'614'265'330'000);

Signer signer(const std::vector<std::string>& secrets) { return std::move(Signer::create(secrets)).value(); }

Verdict verify(const std::vector<std::string>& secrets, const SignedHeaders& headers,
               std::string_view body = kBody, Moment now = kSent) {
  return Verifier(signer(secrets)).verify(headers, body, now);
}

const SignedHeaders kHeaders{kId, "1614265330", kSignature};

TEST(Signature, IsTheOneOfTheStandard) {
  EXPECT_EQ(signer({kSecret}).sign({kId, kSent, kBody}), kSignature);
  EXPECT_EQ(signer({kSecret.substr(6)}).sign({kId, kSent, kBody}), kSignature)
      << "the prefix may be left out";
  EXPECT_EQ(signer({kSecret}).sign({kId, kSent + Millis{999}, kBody}), kSignature)
      << "whole seconds are signed";
}

TEST(Signature, IsTheSameEachTime) {
  Signer one = signer({kSecret});
  EXPECT_EQ(one.sign({kId, kSent, kBody}), kSignature);
  EXPECT_NE(one.sign({kId, kSent, "something else"}), kSignature);
  EXPECT_EQ(one.sign({kId, kSent, kBody}), kSignature);
}

TEST(Signature, SeveralSecretsGiveSeveralWithASpaceBetween) {
  const std::string both = signer({kSecret, kOther}).sign({kId, kSent, kBody});
  EXPECT_EQ(both, std::string(kSignature) + " " + signer({kOther}).sign({kId, kSent, kBody}));
  EXPECT_EQ(verify({kSecret}, {kId, "1614265330", both}), Verdict::kVerified);
  EXPECT_EQ(verify({kOther}, {kId, "1614265330", both}), Verdict::kVerified);
}

TEST(Signature, WithoutASecretThereIsNone) {
  EXPECT_FALSE(signer({}).has_secrets());
  EXPECT_EQ(signer({}).sign({kId, kSent, kBody}), "");
}

TEST(Verifier, AcceptsOneOfItsSecrets) {
  EXPECT_EQ(verify({kSecret}, kHeaders), Verdict::kVerified);
  EXPECT_EQ(verify({kOther, kSecret}, kHeaders), Verdict::kVerified);
  EXPECT_EQ(verify({kOther}, kHeaders), Verdict::kBad);
}

TEST(Verifier, PassesOverOtherVersionsAndBrokenTexts) {
  const std::string list = "v1a,zzzz v2,AAAA v1,??? v1, v1,AAAA  " + std::string(kSignature);
  EXPECT_EQ(verify({kSecret}, {kId, "1614265330", list}), Verdict::kVerified);
  EXPECT_EQ(verify({kSecret}, {kId, "1614265330", "v1,??? v1, v1,AAAA v2,AAAA"}), Verdict::kBad);
}

TEST(Verifier, NoticesEveryChange) {
  EXPECT_EQ(verify({kSecret}, kHeaders, R"({"test": 2432232315})"), Verdict::kBad);
  EXPECT_EQ(verify({kSecret}, {"msg_other", "1614265330", kSignature}), Verdict::kBad);
  EXPECT_EQ(verify({kSecret}, {kId, "1614265331", kSignature}), Verdict::kBad);
  EXPECT_EQ(verify({kSecret}, {"", "1614265330", kSignature}), Verdict::kBad);
  for (const std::string_view timestamp : {"", "-1", "1614265330 ", "x", "99999999999999999999"}) {
    EXPECT_EQ(verify({kSecret}, {kId, timestamp, kSignature}), Verdict::kBad) << timestamp;
  }
  EXPECT_EQ(verify({kSecret}, {kId, "1614265330", ""}), Verdict::kUnsigned);
  EXPECT_EQ(verify({}, kHeaders), Verdict::kNotChecked);
}

TEST(Verifier, AsksForATimeThatIsNear) {
  const Millis edge = Verifier::kTolerance;
  EXPECT_EQ(verify({kSecret}, kHeaders, kBody, kSent + edge), Verdict::kVerified);
  EXPECT_EQ(verify({kSecret}, kHeaders, kBody, kSent - edge), Verdict::kVerified);
  EXPECT_EQ(verify({kSecret}, kHeaders, kBody, kSent + edge + Millis{1}), Verdict::kOutOfTime);
  EXPECT_EQ(verify({kSecret}, kHeaders, kBody, kSent - edge - Millis{1}), Verdict::kOutOfTime);
}

TEST(Secret, SaysWhatIsWrongAndDoesNotShowIt) {
  for (const std::string text : {"whsec_", "", "whsec_not base64", "whsec_abc", "abd="}) {
    const auto secret = parse_secret(text);
    ASSERT_FALSE(secret.ok()) << text;
    EXPECT_EQ(secret.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(secret.error().detail.find("not base64"), std::string::npos) << "it is a secret";
  }
  EXPECT_FALSE(parse_secret(std::string(172, 'A') + "AAAA").ok()) << "132 bytes";
  const auto second = Signer::create({kSecret, "whsec_?"});
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(second.error().detail.starts_with("number 2: ")) << second.error().detail;
}

}  // namespace
}  // namespace delayq::signing
