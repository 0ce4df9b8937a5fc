#include "launcher/cli/settings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options.h"

namespace farandole {

absl::StatusOr<Settings> Settings::FromWords(const NormalisedWords& words) {
  Settings settings;
  for (const NormalisedWords::Given& given : words.options) {
    const OptionSpec& option = *given.option;
    const std::string usual(option.Usual());
    std::string value = given.value;
    if (option.values == 0) value = option.setting.empty() ? "1" : std::string(option.setting_value);
    std::vector<Setting>& values = settings.values_[std::string(option.Setting())];
    if (option.values == 0 && !values.empty() && values.back().value != value) {
      return absl::InvalidArgumentError(
          absl::StrCat(values.back().origin, " and ", usual, " contradict each other; give one of them"));
    }
    if (!option.repeatable) values.clear();
    values.push_back({std::move(value), usual});
  }
  return settings;
}

void Settings::AddDefault(absl::string_view name, Setting setting) {
  std::vector<Setting>& values = values_[std::string(name)];
  if (values.empty()) values.push_back(std::move(setting));
}

const Setting* Settings::Find(absl::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() || it->second.empty() ? nullptr : &it->second.back();
}

std::string Settings::Value(absl::string_view name) const {
  const Setting* const setting = Find(name);
  return setting == nullptr ? "" : setting->value;
}

std::vector<Setting> Settings::All(absl::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() ? std::vector<Setting>() : it->second;
}

}  // namespace farandole
