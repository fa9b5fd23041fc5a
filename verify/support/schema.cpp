// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/schema.hpp"

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#if !__has_include(<valijson/validator.hpp>)
#error "valijson is missing: install libvalijson-dev (scripts/setup.sh does)"
#endif
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace wide::test {

namespace {

using nlohmann::json;

const valijson::Schema& schema_of(const std::string& path) {
  static std::map<std::string, std::unique_ptr<valijson::Schema>> schemas;
  auto& schema = schemas[path];
  if (!schema) {
    std::ifstream file(WIDE_SOURCE_DIR "/" + path);
    const json text = json::parse(file);
    schema = std::make_unique<valijson::Schema>();
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), *schema);
  }
  return *schema;
}

}  // namespace

std::string schema_complaint(const std::string& schema, const std::string& document) {
  const json parsed = json::parse(document);
  valijson::ValidationResults results;
  static valijson::Validator validator;  // keeps the regular expressions that it has compiled
  if (validator.validate(schema_of(schema), valijson::adapters::NlohmannJsonAdapter(parsed),
                         &results))
    return "";
  valijson::ValidationResults::Error error;
  std::string text = "refused";
  while (results.popError(error)) text += ": " + error.description;
  return text;
}

}  // namespace wide::test
